// In which order the elements of a shape lie in memory: its axes, from the one whose neighbours
// are the furthest apart to the one whose neighbours are side by side. The logical order, which
// users, hashes and checkpoints see, is row major: the axes as the shape has them.
//
//   batch x channels x height x width     row major       0 1 2 3
//                                         channels last   0 2 3 1
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/shape.h"

namespace tide {

class MemoryOrder {
 public:
  // Row major for four axes, as a shape has unless said otherwise.
  constexpr MemoryOrder() : MemoryOrder(row_major(4)) {}
  // Throws unless every axis below the number of them is there once.
  explicit MemoryOrder(std::span<const std::size_t> axes);

  // These throw where no shape has this rank.
  [[nodiscard]] static constexpr MemoryOrder row_major(std::size_t rank) {
    MemoryOrder order{Rank{checked(rank)}};
    std::uint8_t axis = 0;
    for (std::uint8_t& at : order.axes_) at = axis < rank ? axis++ : std::uint8_t{0};
    return order;
  }
  // The batch, the axes behind the channels, the channels.
  [[nodiscard]] static constexpr MemoryOrder channels_last(std::size_t rank) {
    MemoryOrder order = row_major(rank);
    if (rank < 3) return order;
    for (std::uint8_t& at : order.axes_)
      if (at > 0) at = at + 1U < rank ? static_cast<std::uint8_t>(at + 1) : std::uint8_t{1};
    return order;
  }

  [[nodiscard]] constexpr std::size_t rank() const { return rank_; }
  // REQUIRES: place < rank(). Place 0 is the outermost.
  [[nodiscard]] constexpr std::size_t axis(std::size_t place) const { return axes_[place]; }
  [[nodiscard]] constexpr bool is_row_major() const { return axes_ == row_major(rank_).axes_; }

  friend constexpr auto operator<=>(const MemoryOrder&, const MemoryOrder&) = default;

 private:
  struct Rank {
    std::size_t value;
  };
  constexpr explicit MemoryOrder(Rank rank) : rank_(static_cast<std::uint8_t>(rank.value)) {}
  static constexpr std::size_t checked(std::size_t rank) {
    if (rank == 0 || rank > Shape::kMostRank)
      throw Error("an order of {} axes is not possible; give it 1 to {}", rank, Shape::kMostRank);
    return rank;
  }

  std::uint8_t rank_;
  std::array<std::uint8_t, Shape::kMostRank> axes_ = {};  // zero behind the last
};

// By axis: how many elements lie between two neighbours. Zero where there is no axis.
using Strides = std::array<std::int64_t, Shape::kMostRank>;

// Throws where the ranks differ or the elements do not fit in 63 bits.
[[nodiscard]] Strides strides_of(const Shape& shape, const MemoryOrder& order);

// Calls visit(logical index, memory index) for every element, as they lie in memory.
template <typename Visit>
void for_each_element(const Shape& shape, const MemoryOrder& order, Visit visit) {
  if (shape.elements() == 0) return;
  static_cast<void>(strides_of(shape, order));  // throws where they do not belong together
  const Strides logical = strides_of(shape, MemoryOrder::row_major(shape.rank()));
  const std::size_t last = order.rank() - 1;
  const std::int64_t count = shape.extent(order.axis(last)), stride = logical[order.axis(last)];
  std::array<std::int64_t, Shape::kMostRank> at = {};  // by place
  std::int64_t first = 0;                              // the logical index of `at`
  std::int64_t memory = 0;
  while (true) {
    for (std::int64_t i = 0; i < count; ++i)
      visit(static_cast<std::size_t>(first + i * stride), static_cast<std::size_t>(memory++));
    std::size_t place = last;
    while (place-- > 0) {
      const std::size_t axis = order.axis(place);
      first += logical[axis];
      if (++at[place] < shape.extent(axis)) break;
      first -= at[place] * logical[axis];
      at[place] = 0;
    }
    if (place > last) return;  // went below the outermost
  }
}

// Copies between logical order and memory order. REQUIRES: both sides have shape.elements().
void to_memory_order(const Shape& shape, const MemoryOrder& order, std::span<const float> logical,
                     std::span<float> memory);
void to_logical_order(const Shape& shape, const MemoryOrder& order, std::span<const float> memory,
                      std::span<float> logical);

}  // namespace tide
