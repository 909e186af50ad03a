// About how long a draft will take once it is a plan, without packing it: with copies held as long as `memory` bytes
// allow.
#pragma once

#include "planner/draft/recorder.h"

namespace tide {

[[nodiscard]] double forecast_seconds(const Step& step, const CostModel& cost, Bytes memory, Draft draft);

}  // namespace tide
