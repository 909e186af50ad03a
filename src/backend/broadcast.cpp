#include "backend/broadcast.h"

#include <algorithm>

namespace tide {
namespace {

// A vector beside an image is one of a single pixel.
Shape image_like(const Shape& shape, const Shape& other) {
  return shape.rank() == 2 && other.rank() == 4 ? Shape{shape.batch(), shape.channels(), 1, 1} : shape;
}

Broadcast begin(const Shape& whole) {
  Broadcast result;
  const MemoryOrder order = MemoryOrder::channels_last(whole.rank());
  result.rank = static_cast<int>(whole.rank());
  for (std::size_t place = 0; place < whole.rank(); ++place) result.extent[place] = whole.extent(order.axis(place));
  return result;
}

void set_strides(Broadcast& result, std::size_t which, const Shape& shape, const MemoryOrder& lies) {
  const MemoryOrder order = MemoryOrder::channels_last(shape.rank());
  const Strides strides = strides_of(shape, lies);
  for (std::size_t place = 0; place < shape.rank(); ++place) {
    const std::size_t axis = order.axis(place);
    result.stride[which][place] = shape.extent(axis) == 1 ? 0 : strides[axis];
  }
}

}  // namespace

Broadcast combined_values(const TaskView& view) {
  const Shape whole = view.output();
  Broadcast result = begin(whole);
  for (std::size_t i = 0; i < 2; ++i) {
    const Shape shape = image_like(view.input(i), whole);
    set_strides(result, i, shape, MemoryOrder::channels_last(shape.rank()));
  }
  return result;
}

Broadcast scaled_values(const TaskView& view, bool channels_last_parameters) {
  const Shape whole = view.input();
  const std::vector<std::int64_t>& axes = view.options<ScaleOptions>().axes;
  Broadcast result = begin(whole);
  set_strides(result, 0, whole, MemoryOrder::channels_last(whole.rank()));
  Shape parameter = whole.with_batch(1);
  for (std::size_t axis = 1; axis < whole.rank(); ++axis)
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) == axes.end())
      parameter = parameter.with_extent(axis, 1);
  set_strides(result, 1, parameter,
              channels_last_parameters ? MemoryOrder::channels_last(parameter.rank())
                                       : MemoryOrder::row_major(parameter.rank()));
  return result;
}

}  // namespace tide
