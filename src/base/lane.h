// What runs side by side: within a lane, ops run in the plan's order.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tide {

enum class Lane : std::uint8_t {
  compute,  // tasks
  out,      // copies away from the device
  in,       // copies towards it
  reduce,   // sums over several devices
};
inline constexpr std::array kLaneTable{Lane::compute, Lane::out, Lane::in, Lane::reduce};
inline constexpr std::array<std::string_view, kLaneTable.size()> kLaneNames{"compute", "out", "in", "reduce"};
inline constexpr std::size_t kLanes = kLaneTable.size();

[[nodiscard]] constexpr std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }
[[nodiscard]] constexpr std::string_view lane_name(Lane lane) { return kLaneNames[index_of(lane)]; }

// One value for each lane.
template <typename Value>
class PerLane {
 public:
  constexpr PerLane() = default;
  constexpr explicit PerLane(const Value& all) { values_.fill(all); }
  [[nodiscard]] constexpr Value& operator[](Lane lane) { return values_[index_of(lane)]; }
  [[nodiscard]] constexpr const Value& operator[](Lane lane) const { return values_[index_of(lane)]; }
  [[nodiscard]] constexpr auto begin() { return values_.begin(); }
  [[nodiscard]] constexpr auto end() { return values_.end(); }
  [[nodiscard]] constexpr auto begin() const { return values_.begin(); }
  [[nodiscard]] constexpr auto end() const { return values_.end(); }
  friend bool operator==(const PerLane&, const PerLane&) = default;

 private:
  std::array<Value, kLanes> values_{};
};

}  // namespace tide
