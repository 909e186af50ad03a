// Plans for several ranks that train together, each on a device of its own: one policy, and which of the devices that
// share a link to their host swap what (vdnn/swaps.h).
#pragma once

#include <functional>
#include <memory>

#include "plan/together.h"
#include "planner/policy.h"

namespace tide {

enum class Stagger : std::uint8_t {
  none,       // every device plans as if it were alone
  paper,      // of what could be swapped, the fewest layers with which every device fits; those of one group in turn
  automatic,  // the fastest set, simulated together, of these two and others (plan_ranks())
};
[[nodiscard]] std::string_view stagger_name(Stagger stagger);
[[nodiscard]] Stagger stagger_from_name(std::string_view name);

// How the plans of a set are made: enough for a rank to make its own.
struct RankWay {
  std::string name;  // "none", "paper, 5 of 13 layers", ...
  std::string policy;
  double link_share = 1;     // of the link, that plans are made for
  std::int32_t layers = -1;  // StaggerOptions::layers
  // By place in the group: StaggerOptions::only; empty: by `layers`.
  std::vector<std::vector<std::int32_t>> only = {};
  // By place in the group: TriggerOptions::early; empty: no triggers.
  std::vector<std::vector<std::int32_t>> early = {};

  friend bool operator==(const RankWay&, const RankWay&) = default;
};
// The options with which the device at that place of its group is planned.
[[nodiscard]] PlannerOptions options_at(const RankWay& way, const PlannerOptions& options, std::int32_t place);

struct RankRequest {
  const Step* step = nullptr;  // that each rank plans, as one of several
  // One rank's plan, with times that may be others than `cost`.
  std::function<PlanResult(const Policy& policy, const PlannerOptions& options, const CostModel& cost)> plan;
  const CostModel* cost = nullptr;
  const Topology* topology = nullptr;  // one rank for each of its devices
  ReduceRoad road = ReduceRoad::ring;
};

struct RankPlans {
  std::string way;                                    // "none", "paper, 5 of 13 layers", ...
  std::vector<std::shared_ptr<const PlanResult>> of;  // by rank; those with the same plan share it
  std::vector<Timeline> timelines;                    // empty where one has no plan
  double seconds = 0;
  std::vector<Trial> trials;
  std::vector<RankWay> ways;  // of all sets that fit, the fastest first

  [[nodiscard]] bool fits() const { return !timelines.empty(); }
  // One that has no plan. REQUIRES: there is one.
  [[nodiscard]] const PlanResult& short_one() const;
};

// Which layers each of so many devices swaps, where a layer's input has so many bytes: all of them once, by turns as
// even in bytes as can be, the largest first (longest processing time first).
[[nodiscard]] std::vector<std::vector<std::int32_t>> balanced_layers(std::span<const Bytes> bytes, std::size_t devices);

// `paper` has the triggers of triggers.h, unless vDNN's own are faster. `automatic` tries: none; paper's; the same with
// other numbers of layers; each device's swap-ins at their best time (triggers.h); planned for the share of the link
// that all of a group leave each; policy `auto`, with all of the link and with that share. A set with a device that
// does not fit does not count.
[[nodiscard]] RankPlans plan_ranks(const RankRequest& request, const Policy& policy, const PlannerOptions& options,
                                   Stagger stagger);

// One set: every device swaps so many layers in turn; with `triggers`, each swap-in at its best time.
[[nodiscard]] RankPlans plan_staggered(const RankRequest& request, const Policy& policy, const PlannerOptions& options,
                                       std::int32_t layers, bool triggers = false);

// From none to all of them; of many layers, some. What `paper` tries, in this order.
[[nodiscard]] std::vector<std::int32_t> layer_counts(std::int32_t all);

// One set: each layer is swapped by one device of each group, balanced_layers(), and comes back at its best time.
[[nodiscard]] RankPlans plan_balanced(const RankRequest& request, const Policy& policy, const PlannerOptions& options);

// The most devices that share a link to their host.
[[nodiscard]] std::size_t largest_group(const Topology& topology);

}  // namespace tide
