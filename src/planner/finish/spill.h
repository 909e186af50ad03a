// The tiers behind host memory: what host memory cannot hold goes on to one of them. There is no way from the device to
// them, so a copy passes through a host buffer each way, which counts.
#pragma once

#include <span>

#include "planner/draft/recorder.h"

namespace tide {

// A tier behind the host, and how much may be alive there at any op.
struct TierBehind {
  Tier tier = Tier::disk;
  Bytes room;
};

// Sends host stays on until at most `host_memory` bytes are alive in host memory at any op, those first whose way back
// is farthest. `everything`: all of them. What rests in host memory stays there and counts. Each goes to the first of
// `behind` that has room for it when it leaves, and to the last where none has. REQUIRES: `behind` is not empty.
[[nodiscard]] Draft spill(const Step& step, const Draft& draft, std::span<const TierBehind> behind, Bytes host_memory,
                          bool everything = false);

// Beside host memory: stays go to memory of another device instead, which the device reaches itself. Those that are in
// the way of at most `host_memory` bytes in host memory, or `everything`, and each only where `room` bytes there have
// place for it when it leaves. REQUIRES: nothing is there yet.
void move_to_peer(const Step& step, Bytes room, Bytes host_memory, bool everything, Draft& draft);

}  // namespace tide
