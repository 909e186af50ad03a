#include "base/memory_order.h"

namespace tide {
namespace {

void require_size(const Shape& shape, std::size_t size) {
  if (static_cast<std::size_t>(shape.elements()) != size)
    throw Error("a tensor of {} elements was given {} values", shape.elements(), size);
}

}  // namespace

MemoryOrder::MemoryOrder(std::span<const std::size_t> axes) : MemoryOrder(Rank{checked(axes.size())}) {
  std::array<bool, Shape::kMostRank> seen = {};
  for (std::size_t place = 0; place < axes.size(); ++place) {
    const std::size_t axis = axes[place];
    if (axis >= axes.size() || seen[axis])
      throw Error("an order of {} axes must name each of 0 to {} once", axes.size(), axes.size() - 1);
    seen[axis] = true;
    axes_[place] = static_cast<std::uint8_t>(axis);
  }
}

Strides strides_of(const Shape& shape, const MemoryOrder& order) {
  if (shape.rank() != order.rank())
    throw Error("a shape of {} extents cannot lie in an order of {} axes", shape.rank(), order.rank());
  Strides strides = {};
  std::int64_t stride = 1;
  for (std::size_t place = order.rank(); place-- > 0;) {
    strides[order.axis(place)] = stride;
    stride = checked_multiply(stride, shape.extent(order.axis(place)));
  }
  return strides;
}

void to_memory_order(const Shape& shape, const MemoryOrder& order, std::span<const float> logical,
                     std::span<float> memory) {
  require_size(shape, logical.size());
  require_size(shape, memory.size());
  for_each_element(shape, order, [&](std::size_t from, std::size_t to) { memory[to] = logical[from]; });
}

void to_logical_order(const Shape& shape, const MemoryOrder& order, std::span<const float> memory,
                      std::span<float> logical) {
  require_size(shape, memory.size());
  require_size(shape, logical.size());
  for_each_element(shape, order, [&](std::size_t to, std::size_t from) { logical[to] = memory[from]; });
}

}  // namespace tide
