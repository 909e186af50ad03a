// Plans for several ranks: who swaps what, when it comes back, and that the chosen set is the fastest.
#include "planner/ranks/ranks.h"

#include <gtest/gtest.h>

#include <set>

#include "cost/device_model.h"
#include "plan/check_together.h"
#include "plan/plan_json.h"
#include "plan/summary.h"
#include "planner/ranks/link_share.h"
#include "planner/ranks/triggers.h"
#include "planner/vdnn/vdnn.h"
#include "step/build.h"
#include "support/error_of.h"
#include "support/on_device.h"
#include "support/random_network.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

// Which of `all` layers device `index` swaps.
std::vector<std::int32_t> swapped(std::int32_t all, std::int32_t layers, std::int32_t index) {
  std::vector<std::int32_t> list;
  for (std::int32_t k = 0; k < all; ++k)
    if (is_swapped({.layers = layers, .index = index}, k, all)) list.push_back(k);
  return list;
}

TEST(Stagger, DevicesOfAGroupTakeLayersInTurn) {
  using List = std::vector<std::int32_t>;
  // 13 / 6 = 2: every second.
  EXPECT_EQ(swapped(13, 6, 0), (List{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(swapped(13, 6, 1), (List{1, 3, 5, 7, 9, 11}));
  // More devices than the interval: the third does what the first does.
  EXPECT_EQ(swapped(13, 6, 2), swapped(13, 6, 0));
  // 13 / 5 is rounded down, and each swaps five.
  EXPECT_EQ(swapped(13, 5, 1), (List{1, 3, 5, 7, 9}));
  // 13 / 7 is 1: the first seven, on every device.
  EXPECT_EQ(swapped(13, 7, 1), (List{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(swapped(13, 1, 3), (List{3}));
  EXPECT_EQ(swapped(13, 0, 0), List{});
  EXPECT_EQ(swapped(3, -1, 1), (List{0, 1, 2}));
}

TEST(Stagger, EachSwapsAsManyAsAsked) {
  for (std::int32_t all = 1; all < 40; ++all)
    for (std::int32_t layers = 1; layers <= all; ++layers)
      for (std::int32_t index = 0; index < 5; ++index)
        EXPECT_EQ(swapped(all, layers, index).size(), static_cast<std::size_t>(layers));
}

// A step of several ranks on a P100, and what plans it.
struct Cluster {
  Cluster(const NetworkPtr& network, std::int64_t batch, std::size_t devices, std::int64_t bucket = 1 << 20)
      : cost(find_device("p100").rates()), topology(default_topology(devices, find_device("p100"))) {
    StepOptions options;
    options.batch = batch;
    options.ranks.count = static_cast<std::int64_t>(devices);
    options.ranks.bucket = Bytes(bucket);
    step = build_step(network, options);
    annotate_for(step, find_device("p100").rates());
    request = {.step = &step,
               .plan = [this](const Policy& policy, const PlannerOptions& asked,
                              const CostModel& times) { return make_plan(policy, step, times, asked); },
               .cost = &cost,
               .topology = &topology,
               .road = ReduceRoad::cpu};
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  DeviceModel cost;
  Topology topology;
  Step step;
  RankRequest request;
};

NetworkPtr vgg() { return std::make_shared<const Network>(make_model("vgg16")); }

// The layers whose inputs leave.
std::set<std::string> out_of(const Plan& plan) {
  std::set<std::string> names;
  const Phase& phase = plan.phases.front();
  for (const Op& op : phase.ops)
    if (op.is_copy() && op.copy().to == Tier::host)
      for (std::size_t t = 0; t < phase.step->tensors.size(); ++t)
        if (phase.step->tensors[t].storage == op.copy().storage) names.insert(tensor_name(*phase.step, TensorId(t)));
  return names;
}

TEST(Stagger, NoTwoDevicesOfAGroupSwapTheSame) {
  Cluster cluster(vgg(), 16, 4);
  const std::int32_t all = find_policy("vdnn-conv").swappable(cluster.step, {});
  EXPECT_EQ(all, 13);
  for (const bool triggers : {false, true}) {
    const RankPlans set =
        plan_staggered(cluster.request, find_policy("vdnn-conv"), test::on_device(), all / 2, triggers);
    ASSERT_TRUE(set.fits());
    const std::set<std::string> first = out_of(*set.of[0]->plan), second = out_of(*set.of[1]->plan);
    EXPECT_FALSE(first.empty());
    EXPECT_FALSE(second.empty());
    for (const std::string& name : first) EXPECT_FALSE(second.contains(name)) << name;
    EXPECT_EQ(set.of[0], set.of[2]);  // each group alike
    EXPECT_EQ(set.of[1], set.of[3]);
  }
}

TEST(Stagger, ThePaperSwapsTheFewestLayersThatDo) {
  Cluster cluster(vgg(), 16, 2);
  const Policy& policy = find_policy("vdnn-conv");
  // With small workspaces: the fastest take as much as all layers together.
  const auto options = [](const std::optional<Bytes>& budget = {}) {
    PlannerOptions asked = test::on_device(budget);
    asked.policy.set<VdnnOptions>().algorithms = Algorithms::smallest;
    return asked;
  };
  const auto needs = [&](std::int32_t layers) {
    Bytes most;
    for (const auto& result : plan_staggered(cluster.request, policy, options(), layers).of)
      most = std::max(most, summarize(*result->plan).peak[Tier::device]);
    return most;
  };
  EXPECT_EQ(plan_ranks(cluster.request, policy, options(), Stagger::paper).way, "paper, 0 of 13 layers");
  const Bytes none = needs(0), all = needs(13);
  ASSERT_LT(all, none);
  const Bytes budget = none - Bytes(1);
  const RankPlans set = plan_ranks(cluster.request, policy, options(budget), Stagger::paper);
  ASSERT_TRUE(set.fits());
  std::int32_t fewest = 0;
  while (needs(fewest) > budget) ++fewest;
  EXPECT_TRUE(set.way.ends_with(fmt::format(", {} of 13 layers", fewest))) << set.way;
  // Its triggers are not slower than vDNN's own, and each rank can make its plan from the way alone.
  EXPECT_LE(set.seconds, plan_staggered(cluster.request, policy, options(budget), fewest).seconds);
  ASSERT_EQ(set.ways.front().name, set.way);
  for (std::int32_t place = 0; place < 2; ++place)
    EXPECT_EQ(to_json(*make_plan(find_policy(set.ways.front().policy), cluster.step, cluster.cost,
                                 options_at(set.ways.front(), options(budget), place))
                           .plan),
              to_json(*set.of[static_cast<std::size_t>(place)]->plan));
  EXPECT_FALSE(plan_ranks(cluster.request, policy, options(Bytes(1 << 20)), Stagger::paper).fits());
  const std::string error = test::error_of(
      [&] { (void)plan_ranks(cluster.request, find_policy("liveness"), test::on_device(), Stagger::paper); });
  EXPECT_NE(error.find("liveness"), std::string::npos);
}

TEST(Stagger, LayersAreSharedOutByTheirBytes) {
  using Lists = std::vector<std::vector<std::int32_t>>;
  const std::vector<Bytes> bytes{Bytes(1), Bytes(13), Bytes(3), Bytes(6), Bytes(2)};
  EXPECT_EQ(balanced_layers(bytes, 2), (Lists{{1}, {0, 2, 3, 4}}));
  EXPECT_EQ(balanced_layers(bytes, 1), (Lists{{0, 1, 2, 3, 4}}));
  EXPECT_EQ(balanced_layers({}, 2), (Lists{{}, {}}));
  Cluster cluster(vgg(), 16, 2);
  const RankPlans set = plan_balanced(cluster.request, find_policy("vdnn-conv"), test::on_device());
  ASSERT_TRUE(set.fits());
  const std::set<std::string> first = out_of(*set.of[0]->plan), second = out_of(*set.of[1]->plan);
  std::size_t copies = 0;
  for (const auto& result : set.of)
    copies += static_cast<std::size_t>(std::ranges::count_if(
        result->plan->phases.front().ops, [](const Op& op) { return op.is_copy() && op.copy().to == Tier::host; }));
  EXPECT_EQ(copies, 13U);
  for (const std::string& name : first) EXPECT_FALSE(second.contains(name)) << name;
  const auto moved = [&](std::size_t rank) {
    return static_cast<double>(summarize(*set.of[rank]->plan).offloaded_bytes.count());
  };
  EXPECT_NEAR(moved(0) / moved(1), 1, 0.1);
}

TEST(Stagger, AutoIsNeverSlowerThanTheOthers) {
  int moved = 0;
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    Cluster cluster(testing_support::random_network(seed), 64, 2 + seed % 3, 4096);
    const Policy& policy = find_policy(seed % 2 == 0 ? "vdnn-all" : "vdnn-conv");
    const RankPlans roomy = plan_ranks(cluster.request, policy, test::on_device(), Stagger::none);
    const Bytes floor = roomy.of.front()->floor[Tier::device];
    const Bytes budget(floor.count() + floor.count() / 50);
    const PlannerOptions options = test::on_device(budget);
    const RankPlans best = plan_ranks(cluster.request, policy, options, Stagger::automatic);
    for (const Stagger stagger : {Stagger::none, Stagger::paper}) {
      const RankPlans other = plan_ranks(cluster.request, policy, options, stagger);
      if (!other.fits()) continue;
      ASSERT_TRUE(best.fits()) << seed;
      EXPECT_LE(best.seconds, other.seconds) << seed;
      moved += stagger == Stagger::none && other.seconds > best.seconds ? 1 : 0;
    }
    for (const Trial& trial : best.trials) EXPECT_LE(best.seconds, trial.seconds.value_or(best.seconds)) << trial.name;
  }
  EXPECT_GT(moved, 0);  // else nothing was tested
}

TEST(Triggers, WithoutOneASwapSavesNothing) {
  Cluster cluster(vgg(), 16, 1);
  const Policy& policy = find_policy("vdnn-conv");
  const auto peak = [&](std::int32_t layers, const TriggerOptions& triggers) {
    PlannerOptions options = test::on_device();
    options.policy.set<StaggerOptions>() = {.layers = layers, .index = 0};
    options.policy.set<TriggerOptions>() = triggers;
    return make_plan(policy, cluster.step, cluster.cost, options).floor[Tier::device];
  };
  const Bytes unswapped = peak(0, {});
  const TriggerOptions none{.early = std::vector<std::int32_t>(13, kNoTrigger)};
  const TriggerOptions late{.early = std::vector<std::int32_t>(13, 0)};
  EXPECT_GE(peak(13, none), unswapped);
  EXPECT_LT(peak(13, late), unswapped);
}

TEST(Triggers, TheLargestBatchGrowsByAConstant) {
  const auto up_to = [](std::int64_t most) { return [=](std::int64_t batch) { return batch <= most; }; };
  EXPECT_EQ(largest_late_batch(up_to(37), 10, 1000), 30);
  EXPECT_EQ(largest_late_batch(up_to(9), 10, 1000), 0);
  EXPECT_EQ(largest_late_batch(up_to(5000), 10, 1000), 1000);
  EXPECT_NO_THROW(require_late_batch(30, 30, 10));
  const std::string error = test::error_of([] { require_late_batch(31, 30, 10); });
  EXPECT_NE(error.find("31"), std::string::npos);
  EXPECT_NE(error.find("30"), std::string::npos);
}

TEST(Triggers, AsEarlyAsMemoryAllowsThenAsLateAsTimeAllows) {
  Cluster cluster(vgg(), 16, 1);
  const Policy& policy = find_policy("vdnn-conv");
  Bytes budget(1LL << 40);
  const auto plan = [&](const TriggerOptions& triggers) {
    PlannerOptions options = test::on_device(budget);
    options.policy.set<TriggerOptions>() = triggers;
    return make_plan(policy, cluster.step, cluster.cost, options);
  };
  const auto seconds = [&](const Plan& made) { return simulate(made, cluster.cost).seconds; };
  const TriggerOptions late{.early = std::vector<std::int32_t>(13, 0)},
      first{.early = std::vector<std::int32_t>(13, 40)};
  const Bytes least = plan(late).floor[Tier::device], most = plan(first).floor[Tier::device];
  ASSERT_LT(least, most);
  budget = Bytes((least.count() + most.count()) / 2);
  const TriggersFound earliest = earliest_triggers(plan, 13, 40);
  ASSERT_TRUE(earliest.result.plan);
  bool bound = false;  // one of them by memory
  for (std::size_t k = 0; k < 13; ++k) {
    std::vector<std::int32_t> earlier = *earliest.triggers.early;
    if (++earlier[k] > 40) continue;
    bound = true;
    EXPECT_FALSE(plan({.early = earlier}).plan) << k;
  }
  EXPECT_TRUE(bound);
  const TriggersFound latest = latest_triggers(plan, seconds, earliest);
  EXPECT_LE(latest.seconds, seconds(*earliest.result.plan) * (1 + 1e-9));
  EXPECT_DOUBLE_EQ(latest.seconds, seconds(*latest.result.plan));
  EXPECT_LT(*latest.triggers.early, *earliest.triggers.early);
  EXPECT_LT(latest.seconds, seconds(*plan(late).plan));
  budget = Bytes(least.count() - 1);
  EXPECT_FALSE(earliest_triggers(plan, 13, 40).result.plan);
}

TEST(LinkShare, SlowsCopiesOverTheLinkOnly) {
  const RooflineModel cost(generic_cpu());
  const LinkShare half(cost, 0.5);
  const double latency = cost.copy_seconds(Bytes(), Tier::device, Tier::host);
  EXPECT_DOUBLE_EQ(half.copy_seconds(Bytes(1000), Tier::device, Tier::host) - latency,
                   2 * (cost.copy_seconds(Bytes(1000), Tier::device, Tier::host) - latency));
  EXPECT_EQ(half.copy_seconds(Bytes(1000), Tier::host, Tier::disk),
            cost.copy_seconds(Bytes(1000), Tier::host, Tier::disk));
}

// Random networks, up to 64 ranks, each with a policy and a budget of its own: they go together. With two sums of one
// rank exchanged they do not, and the simulator says so too.
TEST(Ranks, DifferentPlansGoTogether) {
  constexpr std::array kPolicies{"baseline", "liveness", "vdnn-all", "offload", "superneurons", "sublinear", "auto"};
  std::mt19937 random(7);
  int damaged = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const std::size_t ranks = seed % 10 == 9 ? 64 : 2 + random() % 7;
    Cluster cluster(testing_support::random_network(seed), 3, ranks, 1 + static_cast<std::int64_t>(random() % 600));
    std::vector<Plan> kinds;
    for (const char* const name : kPolicies) {
      const PlanResult roomy = make_plan(find_policy(name), cluster.step, cluster.cost, {});
      const Bytes floor = roomy.floor[Tier::device];
      kinds.push_back(*make_plan(find_policy(name), cluster.step, cluster.cost,
                                 within(Bytes(floor.count() + static_cast<std::int64_t>(random() % 20000))))
                           .plan);
    }
    std::vector<Plan> plans;
    for (std::size_t r = 0; r < ranks; ++r) plans.push_back(kinds[random() % kinds.size()]);
    std::vector<const Plan*> pointers;
    for (const Plan& plan : plans) pointers.push_back(&plan);
    const CostModel* const cost = &cluster.cost;
    for (const Finding& finding : check_together(pointers)) ADD_FAILURE() << seed << ": " << finding.text;
    for (const ReduceRoad road : {ReduceRoad::ring, ReduceRoad::cpu}) {
      const std::vector<Timeline> timelines = simulate_together(pointers, {&cost, 1}, cluster.topology, road);
      for (std::size_t r = 0; r < ranks; ++r) EXPECT_EQ(timelines[r].spans.size(), plans[r].phases[0].ops.size());
    }
    // Damage: two sums of one rank in each other's place.
    Phase& phase = plans[random() % ranks].phases.front();
    std::vector<std::size_t> sums;
    for (std::size_t i = 0; i < phase.ops.size(); ++i)
      if (phase.ops[i].lane == Lane::reduce) sums.push_back(i);
    if (sums.size() < 2) continue;
    const std::size_t a = random() % (sums.size() - 1);
    std::swap(phase.ops[sums[a]].what, phase.ops[sums[a + 1]].what);
    ++damaged;
    const std::vector<Finding> findings = check_together(pointers);
    ASSERT_FALSE(findings.empty()) << seed;
    EXPECT_EQ(findings.front().kind, FindingKind::apart);
    EXPECT_NE(test::error_of([&] { (void)simulate_together(pointers, {&cost, 1}, cluster.topology); }), "");
  }
  EXPECT_GT(damaged, 10);
}

}  // namespace
}  // namespace tide
