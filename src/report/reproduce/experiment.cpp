#include "report/reproduce/experiment.h"

#include <fmt/format.h>

#include <array>

namespace tide::reproduce {

std::string_view standing_name(Standing standing) {
  constexpr std::array<std::string_view, 4> kNames{"exact", "modelled", "not matched", "ours only"};
  return kNames[static_cast<std::size_t>(standing)];
}

void Report::counted(std::string what, std::string unit, double paper, double ours, int decimals, int note) {
  const std::string printed = fmt::format("{:.{}f}", paper, decimals);
  const bool same = fmt::format("{:.{}f}", ours, decimals) == printed;
  values.push_back({std::move(what), std::move(unit), printed, paper, ours, decimals,
                    same ? Standing::exact : Standing::not_matched, same ? 0 : note});
}

void Report::modelled(std::string what, std::string unit, double paper, double ours, int decimals, int note) {
  values.push_back({std::move(what), std::move(unit), fmt::format("{:.{}f}", paper, decimals), paper, ours, decimals,
                    Standing::modelled, note});
}

void Report::remarked(std::string what, std::string unit, std::string paper, double ours, int decimals, int note) {
  values.push_back(
      {std::move(what), std::move(unit), std::move(paper), std::nullopt, ours, decimals, Standing::modelled, note});
}

void Report::only_ours(std::string what, std::string unit, double ours, int decimals, int note) {
  values.push_back({std::move(what), std::move(unit), "", std::nullopt, ours, decimals, Standing::ours_only, note});
}

}  // namespace tide::reproduce
