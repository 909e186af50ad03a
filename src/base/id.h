// Strong ids: an index into one particular table, which cannot be mixed up with an index
// into another. A default-made id is invalid.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tide {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : value_(static_cast<std::int32_t>(index)) {}

  [[nodiscard]] constexpr bool valid() const { return value_ >= 0; }
  // REQUIRES: valid().
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
  [[nodiscard]] constexpr std::int32_t value() const { return value_; }

  friend constexpr auto operator<=>(Id a, Id b) = default;

 private:
  std::int32_t value_ = -1;
};

using LayerId = Id<struct LayerTag>;
using ParameterId = Id<struct ParameterTag>;
using TensorId = Id<struct TensorTag>;
using StorageId = Id<struct StorageTag>;
using ViewId = Id<struct ViewTag>;
using TaskId = Id<struct TaskTag>;

}  // namespace tide

template <typename Tag>
struct std::hash<tide::Id<Tag>> {
  std::size_t operator()(tide::Id<Tag> id) const noexcept { return std::hash<std::int32_t>{}(id.value()); }
};
