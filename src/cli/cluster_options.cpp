#include "cli/cluster_options.h"

#include "base/size_text.h"
#include "planner/ranks/triggers.h"
#include "planner/search/search.h"

namespace tide {
namespace {

Topology topology_of(const ClusterArguments& arguments, const Target& target) {
  const auto devices = static_cast<std::size_t>(arguments.devices.value_or(0));
  if (arguments.topology.empty()) {
    if (target.sheet() == nullptr)
      throw Error("--devices {} needs a --device (see tide devices) or a --topology", devices);
    return default_topology(devices, *target.sheet());
  }
  const Topology all = find_topology(arguments.topology);
  return arguments.devices ? first_devices(all, devices) : all;
}

}  // namespace

void ClusterArguments::add_to(CLI::App& app, bool with_stagger) {
  std::string names;
  for (const Topology& each : named_topologies()) names += (names.empty() ? "" : ", ") + each.name;
  app.add_option("--devices", devices,
                 "Plan for so many devices that train together, and simulate them; --batch is for each of them");
  app.add_option("--topology", topology,
                 "How they are connected: a file (docs/cluster-model.md) or one of " + names +
                     "; by default two devices share a switch");
  if (with_stagger)
    app.add_option("--stagger", stagger,
                   "Which of the devices that share a link swap what: none, each as if it were alone; paper, layers in "
                   "turn (vdnn-conv, vdnn-all); auto, the fastest of many ways, simulated together")
        ->capture_default_str();
  app.add_option("--reduce", reduce,
                 "How gradients are summed: nccl, around a ring of the devices; cpu, in host memory")
      ->capture_default_str();
  app.add_option("--bucket", bucket, "Gradients are summed in pieces of about this size (25MiB)");
  app.add_option("--least-to-shard", least_to_shard, "Smaller parameters stay whole on each device (64KiB)");
  app.add_option("--shard", shard, "What each device keeps only a part of: none, optimizer (its state), or parameters")
      ->capture_default_str();
}

bool ClusterArguments::any() const {
  if (devices && (*devices < 1 || *devices > static_cast<std::int64_t>(kMostDevices)))
    throw Error("--devices {} is not possible; give 1 to {}", *devices, kMostDevices);
  const bool asked = devices || !topology.empty();
  if (!asked && stagger_from_name(stagger) != Stagger::none)
    throw Error("--stagger {} is for several devices; give --devices or --topology too", stagger);
  if (!asked && road_from_name(reduce) != ReduceRoad::ring)
    throw Error("--reduce {} is for several devices; give --devices or --topology too", reduce);
  if (!asked && shard_from_name(shard) != Shard::none)
    throw Error("--shard {} is for several devices; give --devices or --topology too", shard);
  return asked;
}

Cluster::Cluster(const ClusterArguments& arguments, const StepArguments& step, const NetworkPtr& network,
                 const Target& target, const PlannerOptions& options)
    : target_(target),
      options_(options),
      topology_(topology_of(arguments, target)),
      road_(road_from_name(arguments.reduce)),
      network_(network) {
  const StepOptions alone = step.options(true);
  StepOptions together = alone;
  together.ranks.count = static_cast<std::int64_t>(devices());
  together.ranks.shard = shard_from_name(arguments.shard);
  if (!arguments.bucket.empty()) together.ranks.bucket = parse_size(arguments.bucket);
  if (!arguments.least_to_shard.empty()) together.ranks.least_to_shard = parse_size(arguments.least_to_shard);
  together_ = together;
  build_alone_ = [=, &target](const StepChoice& choice) { return target.build(network, alone, choice); };
  build_ = [=, &target](const StepChoice& choice) { return target.build(network, together, choice); };
  target.cover(build_, options.memory[Tier::device]);
  step_ = build_({});
  step_alone_ = build_alone_({});
}

RankPlans Cluster::plan_at(const Policy& policy, Stagger stagger, const Step& step, const BuildStep& build,
                           const Topology& topology) const {
  const RankRequest request{.step = &step,
                            .plan = [&](const Policy& one, const PlannerOptions& options,
                                        const CostModel& cost) { return search_plan(one, build, cost, options); },
                            .cost = &target_.cost(),
                            .topology = &topology,
                            .road = road_};
  return plan_ranks(request, policy, options_, stagger);
}

RankPlans Cluster::plan(const Policy& policy, Stagger stagger) const {
  return plan_at(policy, stagger, step_, build_, topology_);
}

std::int64_t Cluster::largest_late_batch(const Policy& policy, std::int64_t more, std::int64_t most) const {
  PlannerOptions late = options_;
  late.policy.set<TriggerOptions>().early.emplace();
  const auto fits = [&](std::int64_t batch) {
    StepOptions asked = together_;
    asked.batch = batch;
    const BuildStep build = [&](const StepChoice& choice) { return target_.build(network_, asked, choice); };
    return search_any_plan(policy, build, target_.cost(), late).plan.has_value();
  };
  return tide::largest_late_batch(fits, more, most);
}

std::optional<double> Cluster::seconds_alone(const Policy& policy, Stagger stagger) const {
  const RankPlans one = plan_at(policy, stagger, step_alone_, build_alone_, first_devices(topology_, 1));
  return one.fits() ? std::optional(one.seconds) : std::nullopt;
}

}  // namespace tide
