// Elements of values of any rank by their coordinates.
#pragma once

#include <array>

#include "base/memory_order.h"

namespace tide::reference {

using Place = std::array<std::int64_t, Shape::kMostRank>;

class Coordinates {
 public:
  explicit Coordinates(const Shape& shape) : Coordinates(shape, MemoryOrder::channels_last(shape.rank())) {}
  Coordinates(const Shape& shape, const MemoryOrder& order) : shape_(shape), strides_(strides_of(shape, order)) {}

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::size_t at(const Place& place) const {
    std::int64_t index = 0;
    for (std::size_t axis = 0; axis < shape_.rank(); ++axis) index += place[axis] * strides_[axis];
    return static_cast<std::size_t>(index);
  }
  // Of a place in a larger shape: axes of extent 1 are spread over it.
  [[nodiscard]] std::size_t spread_at(Place place) const {
    for (std::size_t axis = 0; axis < shape_.rank(); ++axis)
      if (shape_.extent(axis) == 1) place[axis] = 0;
    return at(place);
  }
  template <typename Visit>
  void for_each(const Visit& visit) const {
    Place place{};
    for (std::int64_t count = shape_.elements(); count > 0; --count) {
      visit(place);
      for (std::size_t axis = shape_.rank(); axis-- > 0;) {
        if (++place[axis] < shape_.extent(axis)) break;
        place[axis] = 0;
      }
    }
  }

 private:
  Shape shape_;
  Strides strides_;
};

// A vector beside an image is one of a single pixel.
inline Shape image_like(const Shape& shape, const Shape& other) {
  return shape.rank() == 2 && other.rank() == 4 ? Shape{shape.batch(), shape.channels(), 1, 1} : shape;
}

}  // namespace tide::reference
