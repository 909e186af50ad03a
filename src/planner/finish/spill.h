// The tier below host memory: what host memory cannot hold goes on to disk. There is no
// way from the device to disk, so a copy passes through a host buffer each way, which
// counts.
#pragma once

#include "planner/draft/recorder.h"

namespace tide {

// Sends host stays on to disk until at most `host_memory` bytes are alive in host memory at
// any op, those first whose way back is farthest. `everything`: all of them. What rests in host
// memory stays there and counts.
[[nodiscard]] Draft spill_to_disk(const Step& step, const Draft& draft, Bytes host_memory, bool everything = false);

}  // namespace tide
