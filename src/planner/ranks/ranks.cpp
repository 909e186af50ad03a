#include "planner/ranks/ranks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "base/names.h"
#include "base/stopwatch.h"
#include "plan/check_together.h"
#include "planner/ranks/link_share.h"
#include "planner/ranks/triggers.h"

namespace tide {
namespace {

constexpr std::array<std::string_view, 3> kStaggerNames{"none", "paper", "auto"};
using Result = std::shared_ptr<const PlanResult>;

// By rank: which device of its group it is.
std::vector<std::int32_t> places_in_group(const Topology& topology) {
  std::vector<std::int32_t> places;
  for (const DevicePlace& place : device_places(topology))
    places.push_back(static_cast<std::int32_t>(place.device_in_switch));
  return places;
}

// A set whose ranks differ only by their place in their group.
template <typename PlanPlace>
RankPlans set_of(const RankRequest& request, RankWay way, const PlanPlace& plan) {
  RankPlans set;
  set.way = way.name;
  std::map<std::int32_t, Result> known;
  std::vector<const Plan*> plans;
  for (const std::int32_t place : places_in_group(*request.topology)) {
    Result& result = known[place];
    if (!result) result = std::make_shared<const PlanResult>(plan(place));
    set.of.push_back(result);
    if (result->plan) plans.push_back(&*result->plan);
  }
  if (plans.size() < set.of.size()) return set;
  require_valid_together(plans);
  set.timelines = simulate_together(plans, {&request.cost, 1}, *request.topology, request.road);
  set.seconds = seconds_of(set.timelines);
  set.ways = {std::move(way)};
  return set;
}

RankPlans alike(const RankRequest& request, const std::string& way, const Policy& policy, const PlannerOptions& options,
                double link_share = 1) {
  const Result result = std::make_shared<const PlanResult>(
      link_share == 1 ? request.plan(policy, options, *request.cost)
                      : request.plan(policy, options, LinkShare(*request.cost, link_share)));
  return set_of(request, {.name = way, .policy = std::string(policy.name), .link_share = link_share},
                [&](std::int32_t) { return *result; });
}

std::string way_text(std::string_view name, std::int32_t layers, std::int32_t all) {
  return fmt::format("{}, {} of {} layers", name, layers, all);
}

class RankSearch {
 public:
  RankSearch(const RankRequest& request, const Policy& policy, const PlannerOptions& options)
      : request_(request),
        policy_(policy),
        options_(options),
        all_(policy.swappable == nullptr ? 0 : policy.swappable(*request.step, options)),
        group_(largest_group(*request.topology)) {}

  RankPlans none() {
    return tried("none", [&] { return alike(request_, "none", policy_, options_); });
  }

  // Where no number of layers does, the answer of all of them.
  RankPlans paper() {
    if (policy_.swappable == nullptr)
      throw Error("policy {} swaps no layers that could be staggered; use vdnn-conv or vdnn-all, or --stagger auto",
                  policy_.name);
    RankPlans set;
    for (const std::int32_t layers : layer_counts(all_)) {
      set = in_turn("paper", layers, false);
      if (!set.fits()) continue;
      if (layers == 0) break;
      RankPlans triggered = in_turn("paper with triggers", layers, true);
      return triggered.fits() && triggered.seconds <= set.seconds ? std::move(triggered) : std::move(set);
    }
    // Late triggers take the least memory.
    if (RankPlans late; !set.fits() && (late = in_turn("paper with triggers", all_, true)).fits()) return late;
    return set;
  }

  RankPlans best() {
    RankPlans best = none();
    const auto consider = [&](RankPlans set) {
      if (set.fits() && (!best.fits() || set.seconds < best.seconds)) best = std::move(set);
    };
    if (policy_.swappable != nullptr) {
      consider(paper());
      const auto of_group = static_cast<std::int32_t>(group_);
      std::set<std::int32_t> counts{(all_ + of_group - 1) / of_group, all_ / 2, all_ / 4, all_};
      for (const std::int32_t layers : counts) {
        consider(in_turn("staggered", layers, false));
        consider(in_turn("staggered and triggered", layers, true));
      }
      if (group_ > 1)
        consider(tried("balanced and triggered", [&] { return plan_balanced(request_, policy_, options_); }));
    }
    const double share = 1 / static_cast<double>(group_);
    const auto other = std::ranges::find(policies(), true, &Policy::tries_all_others);
    consider(tried("auto", [&] { return alike(request_, "auto", *other, options_); }));
    if (group_ > 1) {
      consider(tried("a share of the link",
                     [&] { return alike(request_, "a share of the link", policy_, options_, share); }));
      consider(tried("auto, a share of the link",
                     [&] { return alike(request_, "auto, a share of the link", *other, options_, share); }));
    }
    return best;
  }

  RankPlans finished(RankPlans set) {
    for (Trial& trial : trials_) trial.kept = trial.name == set.way && set.fits();
    set.trials = std::move(trials_);
    std::ranges::stable_sort(ways_, {}, &std::pair<double, RankWay>::first);
    set.ways.clear();
    for (auto& [seconds, way] : ways_) set.ways.push_back(std::move(way));
    // Of equals, the one that was taken.
    std::ranges::stable_partition(set.ways, [&](const RankWay& way) { return way.name == set.way; });
    return set;
  }

 private:
  template <typename Make>
  RankPlans tried(const std::string& name, const Make& make) {
    const Stopwatch watch;
    RankPlans set = make();
    trials_.push_back({.name = name,
                       .depth = 0,
                       .seconds = set.fits() ? std::optional(set.seconds) : std::nullopt,
                       .took = watch.seconds(),
                       .kept = false});
    if (set.fits()) ways_.emplace_back(set.seconds, set.ways.front());
    return set;
  }

  RankPlans in_turn(std::string_view name, std::int32_t layers, bool triggers) {
    const std::string way = way_text(name, layers, all_);
    return tried(way, [&] {
      RankPlans set = plan_staggered(request_, policy_, options_, layers, triggers);
      set.way = way;
      if (set.fits()) set.ways.front().name = way;
      return set;
    });
  }

  const RankRequest& request_;
  const Policy& policy_;
  const PlannerOptions& options_;
  std::int32_t all_;
  std::size_t group_;
  std::vector<Trial> trials_;
  std::vector<std::pair<double, RankWay>> ways_;  // with their seconds
};

// The devices of a group, each with its swap-ins at their best time beside the others.
class TriggeredSet {
 public:
  // REQUIRES: of the way, layers or those of each place are set.
  TriggeredSet(const RankRequest& request, const Policy& policy, const PlannerOptions& options, const RankWay& way)
      : request_(request),
        policy_(policy),
        options_(options),
        way_(way),
        some_(first_devices(*request.topology, std::min(device_count(*request.topology), kSimulated))) {
    const std::size_t places = largest_group(*request.topology);
    for (std::size_t place = 0; place < places; ++place)
      found_.push_back(
          earliest_triggers([&](const TriggerOptions& triggers) { return plan(place, triggers); },
                            way.only.empty() ? static_cast<std::size_t>(way.layers) : way.only[place].size(),
                            static_cast<std::int32_t>(request.step->layer_names.size())));
    if (std::ranges::any_of(found_, [](const TriggersFound& found) { return !found.result.plan; })) return;
    for (std::size_t place = 0; place < places; ++place)
      found_[place] = latest_triggers([&](const TriggerOptions& triggers) { return plan(place, triggers); },
                                      [&](const Plan& tried) { return seconds_beside(place, tried); }, found_[place]);
  }

  [[nodiscard]] const PlanResult& of(std::int32_t place) const {
    return found_[static_cast<std::size_t>(place)].result;
  }
  // By place.
  [[nodiscard]] std::vector<std::vector<std::int32_t>> early() const {
    std::vector<std::vector<std::int32_t>> lists;
    for (const TriggersFound& found : found_) lists.push_back(found.triggers.early.value());
    return lists;
  }

 private:
  // Devices that are simulated for each trigger: further groups are alike.
  static constexpr std::size_t kSimulated = 8;

  [[nodiscard]] PlanResult plan(std::size_t place, const TriggerOptions& triggers) const {
    PlannerOptions changed = options_at(way_, options_, static_cast<std::int32_t>(place));
    changed.policy.set<TriggerOptions>() = triggers;
    return request_.plan(policy_, changed, *request_.cost);
  }

  [[nodiscard]] double seconds_beside(std::size_t own, const Plan& plan) const {
    std::vector<const Plan*> plans;
    for (const std::int32_t place : places_in_group(some_))
      plans.push_back(static_cast<std::size_t>(place) == own ? &plan : &*of(place).plan);
    return seconds_of(simulate_together(plans, {&request_.cost, 1}, some_, request_.road));
  }

  const RankRequest& request_;
  const Policy& policy_;
  const PlannerOptions& options_;
  const RankWay& way_;
  Topology some_;
  std::vector<TriggersFound> found_;  // by place in the group
};

RankPlans triggered_set(const RankRequest& request, const Policy& policy, const PlannerOptions& options, RankWay way) {
  const TriggeredSet triggered(request, policy, options, way);
  RankWay found = way;
  found.early = triggered.early();
  return set_of(request, std::move(found), [&](std::int32_t place) { return triggered.of(place); });
}

}  // namespace

std::string_view stagger_name(Stagger stagger) { return kStaggerNames[static_cast<std::size_t>(stagger)]; }
Stagger stagger_from_name(std::string_view name) { return find_name<Stagger>(kStaggerNames, name, "way to stagger"); }

const PlanResult& RankPlans::short_one() const {
  return **std::ranges::find_if(of, [](const Result& result) { return !result->plan; });
}

std::size_t largest_group(const Topology& topology) {
  std::size_t most = 1;
  for (const HostSlot& host : topology.hosts)
    for (const SwitchSlot& each : host.switches) most = std::max(most, each.devices.size());
  return most;
}

PlannerOptions options_at(const RankWay& way, const PlannerOptions& options, std::int32_t place) {
  PlannerOptions changed = options;
  if (way.layers >= 0) changed.policy.set<StaggerOptions>() = {.layers = way.layers, .index = place};
  if (!way.only.empty()) changed.policy.set<StaggerOptions>().only = way.only[static_cast<std::size_t>(place)];
  if (!way.early.empty()) changed.policy.set<TriggerOptions>().early = way.early[static_cast<std::size_t>(place)];
  return changed;
}

std::vector<std::int32_t> layer_counts(std::int32_t all) {
  constexpr std::int32_t kMostCounts = 32;
  const std::int32_t more = std::max(1, all / kMostCounts);
  std::vector<std::int32_t> counts;
  for (std::int32_t layers = 0; layers < all; layers += more) counts.push_back(layers);
  counts.push_back(all);
  return counts;
}

RankPlans plan_staggered(const RankRequest& request, const Policy& policy, const PlannerOptions& options,
                         std::int32_t layers, bool triggers) {
  RankWay way{.name = fmt::format("{} layers in turn", layers), .policy = std::string(policy.name), .layers = layers};
  if (!triggers)
    return set_of(request, way, [&](std::int32_t place) {
      return request.plan(policy, options_at(way, options, place), *request.cost);
    });
  return triggered_set(request, policy, options, std::move(way));
}

std::vector<std::vector<std::int32_t>> balanced_layers(std::span<const Bytes> bytes, std::size_t devices) {
  std::vector<std::int32_t> by_size(bytes.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::ranges::stable_sort(by_size, std::greater(), [&](std::int32_t k) { return bytes[static_cast<std::size_t>(k)]; });
  std::vector<std::vector<std::int32_t>> layers(devices);
  std::vector<Bytes> sums(devices);
  for (const std::int32_t k : by_size) {
    const auto least = static_cast<std::size_t>(std::ranges::min_element(sums) - sums.begin());
    layers[least].push_back(k);
    sums[least] += bytes[static_cast<std::size_t>(k)];
  }
  for (std::vector<std::int32_t>& list : layers) std::ranges::sort(list);
  return layers;
}

RankPlans plan_balanced(const RankRequest& request, const Policy& policy, const PlannerOptions& options) {
  // What leaves, in its order, where there is room for everything.
  PlannerOptions roomy = options;
  roomy.memory[Tier::device].reset();
  const PlanResult all = request.plan(policy, roomy, *request.cost);
  std::vector<Bytes> bytes;
  if (all.plan)
    for (const Op& op : all.plan->phases.front().ops)
      if (op.is_copy() && op.copy().to == Tier::host)
        bytes.push_back(all.plan->phases.front().step->storage(op.copy().storage).bytes);
  return triggered_set(request, policy, options,
                       {.name = "balanced and triggered",
                        .policy = std::string(policy.name),
                        .only = balanced_layers(bytes, largest_group(*request.topology))});
}

RankPlans plan_ranks(const RankRequest& request, const Policy& policy, const PlannerOptions& options, Stagger stagger) {
  RankSearch search(request, policy, options);
  switch (stagger) {
    case Stagger::none: return search.finished(search.none());
    case Stagger::paper: return search.finished(search.paper());
    case Stagger::automatic: break;
  }
  return search.finished(search.best());
}

}  // namespace tide
