// Where bytes can live: the tiers of the unified tensor pool, the device first and behind it the host. A new tier is a
// row here, at the end, and the rows of its links in route.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tide {

enum class Tier : std::uint8_t {
  device,
  host,
  disk,
  lent,  // host memory of another rank, on this machine or another
  peer,  // device memory of another rank on this machine
};

struct TierRow {
  Tier tier;
  std::string_view name;
  bool only_with_budget;  // there is none where nobody gives it a budget; else no budget means no limit
};
inline constexpr std::array kTierTable{
    TierRow{Tier::device, "device", false}, TierRow{Tier::host, "host", false}, TierRow{Tier::disk, "disk", true},
    TierRow{Tier::lent, "lent", true},      TierRow{Tier::peer, "peer", true},
};
inline constexpr std::size_t kTiers = kTierTable.size();

[[nodiscard]] constexpr std::size_t index_of(Tier tier) { return static_cast<std::size_t>(tier); }
[[nodiscard]] constexpr std::string_view tier_name(Tier tier) { return kTierTable[index_of(tier)].name; }

// One value for each tier.
template <typename Value>
class PerTier {
 public:
  [[nodiscard]] constexpr Value& operator[](Tier tier) { return values_[index_of(tier)]; }
  [[nodiscard]] constexpr const Value& operator[](Tier tier) const { return values_[index_of(tier)]; }
  [[nodiscard]] constexpr auto begin() { return values_.begin(); }
  [[nodiscard]] constexpr auto end() { return values_.end(); }
  [[nodiscard]] constexpr auto begin() const { return values_.begin(); }
  [[nodiscard]] constexpr auto end() const { return values_.end(); }
  friend bool operator==(const PerTier&, const PerTier&) = default;

 private:
  std::array<Value, kTiers> values_{};
};

}  // namespace tide
