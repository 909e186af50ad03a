// Where bytes can live: the tiers of the unified tensor pool, nearest first.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tide {

enum class Tier : std::uint8_t { device, host, disk };
inline constexpr int kTiers = 3;

[[nodiscard]] constexpr std::string_view tier_name(Tier tier) {
  constexpr std::array<std::string_view, kTiers> names{"device", "host", "disk"};
  return names[static_cast<std::size_t>(tier)];
}

}  // namespace tide
