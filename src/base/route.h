// Which tiers are linked: the ways that copies can go, each with the lane it takes and what it runs over. How fast that
// is, is a device's to say (Device::bytes_per_second). What is behind the host is not linked with the device, nor what
// is beside it with the host.
#pragma once

#include <optional>

#include "base/lane.h"
#include "base/tier.h"

namespace tide {

enum class Route : std::uint8_t { out, in, spill, fetch, send, receive, push, pull };
// What copies run over.
enum class Medium : std::uint8_t {
  link,
  disk,
  network,  // between ranks; within a machine its memory
  peer,     // between devices
};

struct RouteRow {
  Route route;
  std::string_view name;
  Tier from, to;
  Lane lane;
  Medium medium;
};
inline constexpr std::array kRouteTable{
    RouteRow{Route::out, "out", Tier::device, Tier::host, Lane::out, Medium::link},
    RouteRow{Route::in, "in", Tier::host, Tier::device, Lane::in, Medium::link},
    RouteRow{Route::spill, "spill", Tier::host, Tier::disk, Lane::out, Medium::disk},
    RouteRow{Route::fetch, "fetch", Tier::disk, Tier::host, Lane::in, Medium::disk},
    RouteRow{Route::send, "send", Tier::host, Tier::lent, Lane::out, Medium::network},
    RouteRow{Route::receive, "receive", Tier::lent, Tier::host, Lane::in, Medium::network},
    RouteRow{Route::push, "push", Tier::device, Tier::peer, Lane::out, Medium::peer},
    RouteRow{Route::pull, "pull", Tier::peer, Tier::device, Lane::in, Medium::peer},
};
inline constexpr std::size_t kRoutes = kRouteTable.size();

[[nodiscard]] constexpr std::size_t index_of(Route route) { return static_cast<std::size_t>(route); }
[[nodiscard]] constexpr const RouteRow& row_of(Route route) { return kRouteTable[index_of(route)]; }

// The way from one tier to another; none where they are not linked.
[[nodiscard]] constexpr std::optional<Route> find_route(Tier from, Tier to) {
  for (const RouteRow& row : kRouteTable)
    if (row.from == from && row.to == to) return row.route;
  return std::nullopt;
}

// One value for each way.
template <typename Value>
class PerRoute {
 public:
  [[nodiscard]] constexpr Value& operator[](Route route) { return values_[index_of(route)]; }
  [[nodiscard]] constexpr const Value& operator[](Route route) const { return values_[index_of(route)]; }
  friend bool operator==(const PerRoute&, const PerRoute&) = default;

 private:
  std::array<Value, kRoutes> values_{};
};

}  // namespace tide
