// Layers that work on each axis by itself, as four maps: of the channels, height and width (and none of the batch).
#pragma once

#include "backend/axis_map.h"
#include "backend/task_view.h"

namespace tide {

struct SeparableMaps {
  AxisMap channels, height, width;
  float value = 0;  // of outputs that are made from no input
};

// Of a mean over height and width, an adaptive pool, a resize or a pad. REQUIRES: their shapes have at most four axes.
[[nodiscard]] SeparableMaps separable_maps(const TaskView& view);
// Whether a mean is over all that lies behind the channels.
[[nodiscard]] bool is_spatial_mean(const TaskView& view);

}  // namespace tide
