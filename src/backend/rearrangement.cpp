#include "backend/rearrangement.h"

namespace tide {
namespace {

// A value whose elements are visited as they lie, and their places in row-major order.
void visit_as_it_lies(const Shape& shape, Rearrangement& result) {
  const MemoryOrder order = MemoryOrder::channels_last(shape.rank());
  const Strides logical = strides_of(shape, MemoryOrder::row_major(shape.rank()));
  result.out_rank = static_cast<int>(shape.rank());
  for (std::size_t place = 0; place < shape.rank(); ++place) {
    result.out_extent[place] = shape.extent(order.axis(place));
    result.out_place[place] = logical[order.axis(place)];
  }
}

void add_digit(Rearrangement& result, std::int64_t extent, std::int64_t stride) {
  const auto at = static_cast<std::size_t>(result.digits++);
  result.digit_extent[at] = extent;
  result.in_stride[at] = stride;
}

Strides lying(const Shape& shape) { return strides_of(shape, MemoryOrder::channels_last(shape.rank())); }

Rearrangement reshaped(const Shape& from, const Shape& to) {
  Rearrangement result;
  visit_as_it_lies(to, result);
  const Strides strides = lying(from);
  for (std::size_t axis = 0; axis < from.rank(); ++axis) add_digit(result, from.extent(axis), strides[axis]);
  return result;
}

// `axes`: of `from`, in the order of `to`.
Rearrangement transposed(const Shape& from, const Shape& to, const std::vector<std::int64_t>& axes) {
  Rearrangement result;
  visit_as_it_lies(to, result);
  const Strides strides = lying(from);
  for (std::size_t axis = 0; axis < to.rank(); ++axis)
    add_digit(result, to.extent(axis), strides[static_cast<std::size_t>(axes[axis])]);
  return result;
}

// Channel i of the result is channel i % groups * (channels / groups) + i / groups of the input.
Rearrangement shuffled(const Shape& shape, std::int64_t groups) {
  Rearrangement result;
  visit_as_it_lies(shape, result);
  const Strides strides = lying(shape);
  const std::int64_t size = shape.channels() / groups;
  add_digit(result, shape.batch(), strides[0]);
  add_digit(result, size, strides[1]);
  add_digit(result, groups, strides[1] * size);
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) add_digit(result, shape.extent(axis), strides[axis]);
  return result;
}

}  // namespace

Rearrangement rearrangement_of(const TaskView& view) {
  const bool forward = view.is_forward();
  const Shape from = forward ? view.input() : view.output(), to = forward ? view.output() : view.input();
  if (view.layer_kind() == LayerKind::channel_shuffle) {
    const std::int64_t groups = view.options<ShuffleOptions>().groups;
    return shuffled(from, forward ? groups : from.channels() / groups);
  }
  if (view.layer_kind() == LayerKind::reshape) return reshaped(from, to);
  const std::vector<std::int64_t>& axes = view.options<TransposeOptions>().axes;
  if (forward) return transposed(from, to, axes);
  std::vector<std::int64_t> back(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) back[static_cast<std::size_t>(axes[i])] = static_cast<std::int64_t>(i);
  return transposed(from, to, back);
}

}  // namespace tide
