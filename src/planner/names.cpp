#include <array>

#include "base/error.h"
#include "planner/planner.h"

namespace tide {
namespace {

template <typename Enum, std::size_t N>
Enum find_name(const std::array<std::string_view, N>& names, std::string_view name, std::string_view what) {
  std::string known;
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
    known += fmt::format("{}{}", i == 0 ? "" : i + 1 == N ? " and " : ", ", names[i]);
  }
  throw Error("unknown {} '{}'; there are {}", what, name, known);
}

constexpr std::array<std::string_view, 4> kRecompute{"none", "speed", "memory", "cost-aware"};
constexpr std::array<std::string_view, 4> kReplacement{"lru", "fifo", "largest", "next-use"};
constexpr std::array<std::string_view, 3> kParameters{"device", "host", "auto"};
constexpr std::array<std::string_view, 2> kAlgorithms{"fastest", "smallest"};

}  // namespace

std::string_view recompute_name(Recompute recompute) { return kRecompute[static_cast<std::size_t>(recompute)]; }
Recompute recompute_from_name(std::string_view name) {
  return find_name<Recompute>(kRecompute, name, "recompute strategy");
}
std::string_view replacement_name(Replacement replacement) {
  return kReplacement[static_cast<std::size_t>(replacement)];
}
Replacement replacement_from_name(std::string_view name) {
  return find_name<Replacement>(kReplacement, name, "replacement rule");
}
Parameters parameters_from_name(std::string_view name) {
  return find_name<Parameters>(kParameters, name, "place for parameters");
}
Algorithms algorithms_from_name(std::string_view name) {
  return find_name<Algorithms>(kAlgorithms, name, "choice of algorithms");
}

}  // namespace tide
