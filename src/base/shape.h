// The shape of a tensor: one to six extents, as the user's framework names them. The first
// is the batch. Images are batch x channels x height x width; weights use the same four
// numbers as output channels x input channels (of one group) x height x width. How the
// elements lie in memory is not said here.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace tide {

class Shape {
 public:
  static constexpr std::size_t kMostRank = 6;

  constexpr Shape() : rank_(4), extents_{1, 1, 1, 1} {}
  // Throws where there is no extent or more than kMostRank.
  constexpr Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  constexpr explicit Shape(std::span<const std::int64_t> extents) : rank_(extents.size()) {
    if (rank_ == 0 || rank_ > kMostRank)
      throw Error("a shape of {} extents is not possible; give it 1 to {}", rank_, kMostRank);
    for (std::size_t axis = 0; axis < rank_; ++axis) extents_[axis] = extents[axis];
  }

  [[nodiscard]] constexpr std::size_t rank() const { return rank_; }
  // Throws where there is no such axis.
  [[nodiscard]] constexpr std::int64_t extent(std::size_t axis) const { return extents_[checked(axis)]; }
  [[nodiscard]] constexpr std::span<const std::int64_t> extents() const { return std::span(extents_).first(rank_); }

  // The number of elements; throws where it does not fit in 63 bits.
  [[nodiscard]] std::int64_t elements() const;
  // Elements of one sample: of all extents but the first.
  [[nodiscard]] std::int64_t per_sample() const;
  // Elements of one sample and channel: of all extents behind the second.
  [[nodiscard]] std::int64_t positions() const;

  [[nodiscard]] constexpr Shape with_extent(std::size_t axis, std::int64_t n) const {
    Shape result = *this;
    result.extents_[checked(axis)] = n;
    return result;
  }
  [[nodiscard]] constexpr Shape with_batch(std::int64_t n) const { return with_extent(0, n); }

  // What an image calls its extents. They mean something for ranks 1 (batch), 2 (and channels)
  // and 4 (all of them); an extent that is not there is 1.
  [[nodiscard]] constexpr std::int64_t batch() const { return extents_[0]; }
  [[nodiscard]] constexpr std::int64_t channels() const { return rank_ > 1 ? extents_[1] : 1; }
  [[nodiscard]] constexpr std::int64_t height() const { return rank_ == 4 ? extents_[2] : 1; }
  [[nodiscard]] constexpr std::int64_t width() const { return rank_ == 4 ? extents_[3] : 1; }

  friend constexpr auto operator<=>(const Shape&, const Shape&) = default;

 private:
  [[nodiscard]] constexpr std::size_t checked(std::size_t axis) const {
    if (axis >= rank_) throw Error("there is no axis {} in a shape of {} extents", axis, rank_);
    return axis;
  }

  std::size_t rank_;
  // Zero where there is no axis, so that equal shapes are equal byte by byte.
  std::array<std::int64_t, kMostRank> extents_ = {};
};

enum class DataType : std::uint8_t { f32, i32, u8, bf16 };
inline constexpr std::size_t kDataTypes = static_cast<std::size_t>(DataType::bf16) + 1;
[[nodiscard]] std::string_view type_name(DataType type);

[[nodiscard]] std::int64_t element_bytes(DataType type);
[[nodiscard]] Bytes bytes_of(const Shape& shape, DataType type);
// "64x56x56" (without the batch).
[[nodiscard]] std::string sample_text(const Shape& shape);

}  // namespace tide
