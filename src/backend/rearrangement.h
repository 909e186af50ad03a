// Layers that put elements in other places: each element of the result is one of the input.
//
// The place of a result's element is counted through some extents (row major); from there each digit leads on in
// the input's memory by its stride. Backward is the same for the other direction.
#pragma once

#include <array>

#include "backend/task_view.h"

namespace tide {

struct Rearrangement {
  static constexpr int kMostDigits = 8;
  // From memory order of the result to its place: extents as they lie, and what a step there is in places.
  int out_rank = 0;
  std::array<std::int64_t, kMostDigits> out_extent = {}, out_place = {};
  // From the place to memory of the input.
  int digits = 0;
  std::array<std::int64_t, kMostDigits> digit_extent = {}, in_stride = {};
};

// What makes y of x, or dx of dy, of a channel shuffle, a transpose or a reshape.
[[nodiscard]] Rearrangement rearrangement_of(const TaskView& view);

}  // namespace tide
