// Planning for several devices that train together, without having them.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/cost_options.h"
#include "planner/ranks/ranks.h"

namespace tide {

struct ClusterArguments {
  std::optional<std::int64_t> devices;
  std::string topology;  // empty: two devices per switch
  std::string stagger{stagger_name(Stagger::none)};
  std::string reduce{road_name(ReduceRoad::ring)};
  std::string shard{shard_name(Shard::none)}, bucket, least_to_shard;
  void add_to(CLI::App& app, bool with_stagger = true);
  // Whether there is something to simulate together. Throws where the options do not go together.
  [[nodiscard]] bool any() const;
};

// A step on all devices, and what plans it.
class Cluster {
 public:
  Cluster(const ClusterArguments& arguments, const StepArguments& step, const NetworkPtr& network, const Target& target,
          const PlannerOptions& options);

  [[nodiscard]] RankPlans plan(const Policy& policy, Stagger stagger) const;
  // Of one device alone, planned in the same way; none: it does not fit.
  [[nodiscard]] std::optional<double> seconds_alone(const Policy& policy, Stagger stagger) const;
  // Of each device, where all that the policy can swap is swapped and comes back as late as it can; counted in steps of
  // `more`, up to `most`. REQUIRES: the policy swaps layers.
  [[nodiscard]] std::int64_t largest_late_batch(const Policy& policy, std::int64_t more, std::int64_t most) const;
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] std::size_t devices() const { return device_count(topology_); }
  [[nodiscard]] const CostModel& cost() const { return target_.cost(); }

 private:
  [[nodiscard]] RankPlans plan_at(const Policy& policy, Stagger stagger, const Step& step, const BuildStep& build,
                                  const Topology& topology) const;

  const Target& target_;
  const PlannerOptions& options_;
  Topology topology_;
  ReduceRoad road_;
  NetworkPtr network_;
  StepOptions together_;
  BuildStep build_, build_alone_;
  Step step_, step_alone_;
};

}  // namespace tide
