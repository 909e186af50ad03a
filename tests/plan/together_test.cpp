// Several devices against one clock: alone they take what simulate() says, together they share links and sums.
#include "plan/together.h"

#include <gtest/gtest.h>

#include "cost/device_model.h"
#include "plan/flows.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"
#include "support/by_hand.h"
#include "support/error_of.h"
#include "support/random_network.h"

namespace tide {
namespace {

using test::HandCost;
using test::HandPlan;
using test::plain_topology;

std::vector<Timeline> played(const std::vector<Plan>& plans, const CostModel& cost, const Topology& topology,
                             ReduceRoad road = ReduceRoad::ring) {
  std::vector<const Plan*> pointers;
  for (const Plan& plan : plans) pointers.push_back(&plan);
  const CostModel* const one = &cost;
  return simulate_together(pointers, {&one, 1}, topology, road);
}

double seconds(const std::vector<Plan>& plans, const CostModel& cost, const Topology& topology,
               ReduceRoad road = ReduceRoad::ring) {
  return seconds_of(played(plans, cost, topology, road));
}

Plan random_plan(std::uint32_t seed, const char* policy, const Device& device, std::int64_t batch = 4) {
  StepOptions options;
  options.batch = batch;
  Step step = build_step(testing_support::random_network(seed), options);
  annotate_for(step, device);
  return *make_plan(find_policy(policy), step, DeviceModel(device), {}).plan;
}

TEST(Together, OneDeviceAloneTakesWhatTheSimulatorSays) {
  for (const char* name : {"k40c", "h100"}) {
    const DeviceSheet& sheet = find_device(name);
    const DeviceModel cost(sheet.rates());
    for (std::uint32_t seed = 0; seed < 20; ++seed)
      for (const char* policy : {"vdnn-all", "offload", "superneurons"}) {
        const Plan plan = random_plan(seed, policy, sheet.rates());
        const Timeline alone = simulate(plan, cost);
        const Timeline same = played({plan}, cost, default_topology(1, sheet)).front();
        ASSERT_EQ(alone.spans.size(), same.spans.size());
        EXPECT_NEAR(same.seconds, alone.seconds, 1e-9 * alone.seconds);
        for (std::size_t i = 0; i < alone.spans.size(); ++i) {
          EXPECT_EQ(alone.spans[i].op, same.spans[i].op);
          EXPECT_NEAR(same.spans[i].start, alone.spans[i].start, 1e-9 * alone.seconds);
          EXPECT_NEAR(same.spans[i].end, alone.spans[i].end, 1e-9 * alone.seconds);
        }
      }
  }
}

TEST(Together, OthersNeverMakeADeviceFaster) {
  const DeviceSheet& sheet = find_device("p100");
  const DeviceModel cost(sheet.rates());
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::vector<Plan> plans;
    for (std::uint32_t rank = 0; rank < 4; ++rank)
      plans.push_back(random_plan(seed + rank % 2, rank % 2 == 0 ? "vdnn-all" : "offload", sheet.rates()));
    const std::vector<Timeline> timelines = played(plans, cost, default_topology(4, sheet));
    for (std::size_t r = 0; r < plans.size(); ++r) {
      const Timeline alone = simulate(plans[r], cost);
      ASSERT_EQ(alone.spans.size(), timelines[r].spans.size());
      for (std::size_t i = 0; i < alone.spans.size(); ++i)
        EXPECT_GE(timelines[r].spans[i].end, alone.spans[i].end - 1e-9 * alone.seconds);
    }
  }
}

TEST(Together, RoundsAndPhasesFollowEachOther) {
  HandPlan hand;
  const std::int32_t task = hand.task("a", 2);
  hand.out(3'000'000, {task});
  const HandCost cost(1e9, 1e-3);
  const Plan plan = hand.plan(3);
  EXPECT_NEAR(seconds({plan}, cost, plain_topology({1}, 1e9)), 3 * 6e-3, 1e-12);
  EXPECT_NEAR(simulate(plan, cost).seconds, 3 * 6e-3, 1e-12);
}

// 1 GB out at 1 GB/s.
Plan one_copy(bool out = true, std::int64_t bytes = 1'000'000'000) {
  HandPlan hand;
  if (out)
    hand.out(bytes);
  else
    hand.in(bytes);
  return hand.plan();
}

TEST(Together, DevicesOfOneSwitchShareItsLink) {
  const HandCost cost(1e9);
  const Plan out = one_copy(), in = one_copy(false);
  EXPECT_NEAR(seconds({out, out}, cost, plain_topology({2}, 1e9)), 2, 1e-9);
  EXPECT_NEAR(seconds({out, out}, cost, plain_topology({1, 1}, 1e9)), 1, 1e-9);
  EXPECT_NEAR(seconds({out, out, out, out}, cost, plain_topology({2, 2}, 1e9)), 2, 1e-9);
  // The other way is free, or leaves each a share.
  EXPECT_NEAR(seconds({out, in}, cost, plain_topology({2}, 1e9)), 1, 1e-9);
  EXPECT_NEAR(seconds({out, in}, cost, plain_topology({2}, 1e9, 0.8)), 1.25, 1e-9);
}

TEST(Together, WhatEndsLeavesItsShareToTheOthers) {
  const HandCost cost(1e9);
  // The small one ends at 0.5 s with a quarter; the other has had a quarter too and goes on alone.
  const std::vector<Timeline> timelines =
      played({one_copy(true, 250'000'000), one_copy()}, cost, plain_topology({2}, 1e9));
  EXPECT_NEAR(timelines[0].seconds, 0.5, 1e-9);
  EXPECT_NEAR(timelines[1].seconds, 1.25, 1e-9);
}

TEST(Together, SharesAreMaxMinFair) {
  // Three flows over a link of 10: one that can do 2 only leaves 4 each to the others.
  const std::vector<together::OneWay> links{{10, 10}, {10, 10}};
  together::Flow slow{.path = {{{0, 1}}, 0}, .cap = 2}, a{.path = {{{0, 1}}, 0}}, b{.path = {{{0, 1}}, 0}};
  together::share_fairly(links, {&a, &slow, &b});
  EXPECT_DOUBLE_EQ(slow.rate, 2);
  EXPECT_DOUBLE_EQ(a.rate, 4);
  EXPECT_DOUBLE_EQ(b.rate, 4);
}

TEST(Together, NoLinkCarriesMoreThanItCan) {
  std::mt19937 random(1);
  const auto up_to = [&](std::uint32_t most) { return static_cast<double>(random() % most); };
  for (int round = 0; round < 200; ++round) {
    std::vector<together::OneWay> links;
    for (int l = 0; l < 8; ++l) links.push_back({1 + up_to(9), 1});
    std::vector<together::Flow> flows(1 + random() % 8);
    for (together::Flow& flow : flows) {
      for (std::size_t l = 0; l < links.size(); ++l)
        if (random() % 3 == 0) flow.path.crossings.push_back({l, 1 + up_to(2)});
      if (flow.path.crossings.empty()) flow.path.crossings.push_back({0, 1});
      if (random() % 2 == 0) flow.cap = 0.1 * (1 + up_to(20));
    }
    std::vector<together::Flow*> pointers;
    for (together::Flow& flow : flows) pointers.push_back(&flow);
    together::share_fairly(links, pointers);
    std::vector<double> load(links.size(), 0);
    for (const together::Flow& flow : flows)
      for (const together::Crossing& c : flow.path.crossings) load[c.link] += c.times * flow.rate;
    const auto room = [&](std::size_t l) { return load[l ^ 1U] > 0 ? links[l].both : links[l].alone; };
    for (std::size_t l = 0; l < links.size(); ++l) EXPECT_LE(load[l], room(l) * (1 + 1e-9));
    // Each is at its cap, or on a full link on which nobody has more.
    for (const together::Flow& flow : flows) {
      EXPECT_GT(flow.rate, 0);
      bool bound = flow.rate >= flow.cap * (1 - 1e-9);
      for (const together::Crossing& c : flow.path.crossings) {
        if (load[c.link] < room(c.link) * (1 - 1e-9)) continue;
        bool most = true;
        for (const together::Flow& other : flows)
          for (const together::Crossing& d : other.path.crossings)
            most = most && (d.link != c.link || other.rate <= flow.rate * (1 + 1e-9));
        bound = bound || most;
      }
      EXPECT_TRUE(bound);
    }
  }
}

TEST(Together, RemoteTiersOfThePaper) {
  const Topology topology = find_topology("superneurons");
  const together::Roads roads(topology);
  const auto rate = [&](const together::Path& path) {
    together::Flow flow{.path = path};
    together::share_fairly(roads.links(), {&flow});
    return flow.rate;
  };
  EXPECT_DOUBLE_EQ(rate(roads.up(0)), 8e9);
  EXPECT_DOUBLE_EQ(rate(roads.between(0, 1)), 10e9);
  EXPECT_DOUBLE_EQ(rate(roads.between(0, 2)), 6e9);
}

// A task of `milliseconds`, then the sum of 1 GB.
Plan one_sum(std::int32_t milliseconds, const std::string& name = "g", std::int64_t bytes = 1'000'000'000,
             TaskKind kind = TaskKind::reduce) {
  HandPlan hand;
  hand.reduce(name, bytes, {hand.task("t", milliseconds)}, kind);
  return hand.plan();
}

TEST(Together, ARingSendsTwiceTheOthersShare) {
  const HandCost cost(1e9);
  for (const std::size_t n : {2U, 3U, 8U}) {
    const std::vector<Plan> plans(n, one_sum(0));
    const double expected = 2.0 * static_cast<double>(n - 1) / static_cast<double>(n);
    EXPECT_NEAR(seconds(plans, cost, plain_topology({n}, 1e9)), expected, 1e-9) << n;
    const std::vector<Plan> halves(n, one_sum(0, "g", 1'000'000'000, TaskKind::scatter));
    EXPECT_NEAR(seconds(halves, cost, plain_topology({n}, 1e9)), expected / 2, 1e-9) << n;
  }
  // Two per switch: each switch's link has one transfer up and one down, as each device's own.
  EXPECT_NEAR(seconds(std::vector<Plan>(4, one_sum(0)), cost, plain_topology({2, 2}, 1e9)), 1.5, 1e-9);
  // By host memory, it has two.
  Topology by_host = plain_topology({2, 2}, 1e9);
  by_host.hosts[0].peer_to_peer = false;
  EXPECT_NEAR(seconds(std::vector<Plan>(4, one_sum(0)), cost, by_host), 3, 1e-9);
  // Direct links.
  Topology direct = by_host;
  for (SwitchSlot& each : direct.hosts[0].switches)
    for (DeviceSlot& device : each.devices) {
      device.peer_group = 0;
      device.peer_bytes_per_second = 15e9;
    }
  EXPECT_NEAR(seconds(std::vector<Plan>(4, one_sum(0)), cost, direct), 0.1, 1e-9);
}

TEST(Together, TheHostAddsAtTheSpeedOfItsMemory) {
  const HandCost cost(1e9);
  Topology topology = plain_topology({2, 2}, 1e9);
  topology.hosts[0].memory_bytes_per_second = 10e9;
  // Two share a link on the way up and down; four gradients are read and one sum is written.
  EXPECT_NEAR(seconds(std::vector<Plan>(4, one_sum(0)), cost, topology, ReduceRoad::cpu), 2 + 0.5 + 2, 1e-9);
  topology.hosts.push_back(topology.hosts[0]);
  EXPECT_NEAR(seconds(std::vector<Plan>(8, one_sum(0)), cost, topology, ReduceRoad::cpu), 2 + 0.5 + 1 + 2, 1e-9);
}

TEST(Together, ASumWaitsForTheLastRankAndEndsForAll) {
  const HandCost cost(1e9);
  const std::vector<Timeline> timelines =
      played({one_sum(10), one_sum(500), one_sum(20)}, cost, plain_topology({3}, 1e9));
  for (const Timeline& timeline : timelines) {
    EXPECT_NEAR(timeline.spans.back().start, 0.5, 1e-9);
    EXPECT_NEAR(timeline.seconds, 0.5 + 4.0 / 3, 1e-9);
  }
}

TEST(Together, SumsAndCopiesShareLinks) {
  const HandCost cost(1e9);
  HandPlan both;
  both.reduce("g", 1'000'000'000);
  both.out(1'000'000'000);
  // Half of each link for each, over at 2 s: then nothing is left.
  EXPECT_NEAR(seconds({both.plan(), both.plan()}, cost, plain_topology({1, 1}, 1e9)), 2, 1e-9);
}

TEST(Together, DifferentOrdersAreErrorsThatNameTheOps) {
  HandPlan a, b;
  a.reduce("first", 100);
  a.reduce("second", 100);
  b.reduce("second", 100);
  b.reduce("first", 100);
  const HandCost cost(1e9);
  const std::string swapped = test::error_of([&] {
    (void)played({a.plan(), b.plan()}, cost, plain_topology({2}, 1e9));
  });
  EXPECT_NE(swapped.find("op 0 (first"), std::string::npos) << swapped;
  EXPECT_NE(swapped.find("op 0 (second"), std::string::npos) << swapped;
  HandPlan fewer;
  fewer.reduce("first", 100);
  const std::string stuck = test::error_of([&] {
    (void)played({a.plan(), fewer.plan()}, cost, plain_topology({2}, 1e9));
  });
  EXPECT_NE(stuck.find("rank 0 is in op 1 (second"), std::string::npos) << stuck;
  EXPECT_NE(stuck.find("rank 1 is done"), std::string::npos) << stuck;
  EXPECT_NE(test::error_of([&] { (void)played({a.plan()}, cost, Topology{}); }).find("0 devices"), std::string::npos);
}

}  // namespace
}  // namespace tide
