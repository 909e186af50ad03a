// Values of several shapes that are spread to one: its extents as they lie in memory, and how far each value goes on
// from one to the next; 0 where it is spread.
#pragma once

#include <array>
#include <vector>

#include "backend/task_view.h"

namespace tide {

struct Broadcast {
  static constexpr int kMostAxes = static_cast<int>(Shape::kMostRank);
  int rank = 0;
  std::array<std::int64_t, kMostAxes> extent = {};  // the batch first, the channels last
  std::array<std::array<std::int64_t, kMostAxes>, 2> stride = {};

  [[nodiscard]] std::int64_t elements() const {
    std::int64_t count = 1;
    for (int axis = 0; axis < rank; ++axis) count *= extent[static_cast<std::size_t>(axis)];
    return count;
  }
  // Whether a value is as large as the whole.
  [[nodiscard]] bool is_whole(std::size_t which) const {
    for (int axis = 0; axis < rank; ++axis)
      if (stride[which][static_cast<std::size_t>(axis)] == 0 && extent[static_cast<std::size_t>(axis)] != 1)
        return false;
    return true;
  }
};

// Of both inputs of a combine layer.
[[nodiscard]] Broadcast combined_values(const TaskView& view);
// Of the input and the parameters of a scale layer, whose memory is channels last or row major.
[[nodiscard]] Broadcast scaled_values(const TaskView& view, bool channels_last_parameters);

}  // namespace tide
