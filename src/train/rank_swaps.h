// What the ranks of a job swap where their devices share links: agreed on by all of them, once, before anybody plans.
#pragma once

#include "planner/ranks/ranks.h"
#include "train/session_options.h"

namespace tide {

// Where ranks are: rank r is the topology's device `device_of[r]`.
struct RankLinks {
  Topology topology;
  std::vector<std::size_t> device_of;

  // Which device of its link group a rank has.
  [[nodiscard]] std::int32_t place_of(int rank) const;
};
// By the settings' topology, or else by the machines that the ranks are on: devices behind one PCIe switch share a
// link, as do all ranks of a host whose device is its memory; each link as fast as the cost model says. For all ranks.
[[nodiscard]] RankLinks find_links(const RankSettings& ranks, const Backend& backend, const CostModel& cost);

struct SwapRequest {
  const RankSettings& ranks;
  const RankLinks& links;
  const Policy& policy;
  const BuildStep& build;  // of the step that all ranks do together
  const CostModel& cost;
  const PlannerOptions& options;
  ReduceRoad road = ReduceRoad::cpu;
};
// The way that every rank plans in, each its own place of it; none: there is no way in which all fit. For all ranks,
// whose budgets and times may differ: `paper` takes the fewest layers with which each of them fits; with `automatic`
// the first rank tries, and the fastest way in which all fit is taken. REQUIRES: the settings stagger.
[[nodiscard]] std::optional<RankWay> agree_on_swaps(const SwapRequest& request);

// Between ranks.
[[nodiscard]] std::string ways_to_text(const std::vector<RankWay>& ways);
[[nodiscard]] std::vector<RankWay> ways_from_text(const std::string& text);

}  // namespace tide
