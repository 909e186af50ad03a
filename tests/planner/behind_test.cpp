// What host memory has no room for goes on to the tiers behind it: the fastest first, as long as it has room.
#include <gtest/gtest.h>

#include "plan/checker.h"
#include "plan/summary.h"
#include "plan/timeline.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

constexpr double kFast = 4e9, kDisk = 1e8, kSlow = 1e7;

Device with_network(double bytes_per_second, double peer = 0) {
  Device device = generic_cpu();
  device.disk_bytes_per_second = kDisk;
  device.network_bytes_per_second = bytes_per_second;
  device.peer_bytes_per_second = peer;
  return device;
}

class Behind : public testing::Test {
 protected:
  static constexpr std::int64_t kMuch = std::int64_t{1} << 40;

  // With so little host memory that most has to go on.
  void SetUp() override {
    options_.memory[Tier::disk] = Bytes(kMuch);
    options_.memory[Tier::host] = Bytes(0);
    options_.memory[Tier::host] = plan(kFast).floor[Tier::host];
    ASSERT_FALSE(options_.memory[Tier::host]->is_zero());
    all_ = peaks(kFast)[Tier::disk];
    ASSERT_GT(all_, Bytes(10 * kAlignment));
  }

  PlanResult plan(double network) {
    const NetworkPtr network_of = std::make_shared<const Network>(make_model("alexnet", Shape{1, 3, 67, 67}));
    return make_plan(find_policy("offload"), build_step(network_of, {.batch = 4}),
                     RooflineModel(with_network(network, peer_)), options_);
  }
  // Of a plan that is valid and within the budgets.
  PerTier<Bytes> peaks(double network) {
    const PlanResult result = plan(network);
    EXPECT_TRUE(result.plan);
    if (!result.plan) return {};
    require_valid(*result.plan);
    return summarize(*result.plan).peak;
  }

  PlannerOptions options_;
  double peer_ = 0;
  Bytes all_;  // that go on
};

TEST_F(Behind, WithoutALenderNothingIsLent) { EXPECT_TRUE(peaks(kFast)[Tier::lent].is_zero()); }

TEST_F(Behind, TheFasterTierComesFirst) {
  options_.memory[Tier::lent] = Bytes(kMuch);
  EXPECT_EQ(peaks(kFast)[Tier::lent], all_);
  EXPECT_TRUE(peaks(kFast)[Tier::disk].is_zero());
  EXPECT_EQ(peaks(kSlow)[Tier::disk], all_);
  EXPECT_TRUE(peaks(kSlow)[Tier::lent].is_zero());
}

TEST_F(Behind, TheOtherTakesWhatItHasNoRoomFor) {
  const Bytes half(all_.count() / 2 / kAlignment * kAlignment);
  options_.memory[Tier::lent] = half;
  const PerTier<Bytes> lent_first = peaks(kFast);
  EXPECT_FALSE(lent_first[Tier::lent].is_zero());
  EXPECT_LE(lent_first[Tier::lent], half);
  EXPECT_FALSE(lent_first[Tier::disk].is_zero());
  EXPECT_LT(lent_first[Tier::disk], all_);
  options_.memory[Tier::lent] = Bytes(kMuch);
  options_.memory[Tier::disk] = half;
  const PerTier<Bytes> disk_first = peaks(kSlow);
  EXPECT_FALSE(disk_first[Tier::disk].is_zero());
  EXPECT_LE(disk_first[Tier::disk], half);
  EXPECT_FALSE(disk_first[Tier::lent].is_zero());
}

TEST_F(Behind, AFasterTierMakesAFasterPlan) {
  const auto seconds = [&] { return simulate(*plan(kFast).plan, RooflineModel(with_network(kFast))).seconds; };
  const double with_disk = seconds();
  options_.memory[Tier::lent] = Bytes(kMuch);
  EXPECT_LT(seconds(), with_disk);
}

TEST_F(Behind, SaysHowMuchIsToBeLent) {
  options_.memory[Tier::disk].reset();
  options_.memory[Tier::lent] = all_ - Bytes(kAlignment);
  const PlanResult refused = plan(kFast);
  EXPECT_FALSE(refused.plan);
  EXPECT_EQ(refused.short_of, Tier::lent);
  EXPECT_EQ(refused.floor[Tier::lent], all_);
  options_.memory[Tier::lent] = all_;
  EXPECT_EQ(peaks(kFast)[Tier::lent], all_);
}

// Memory of another device stands beside the host's: all goes there where it is faster, else what the host is short of.
TEST_F(Behind, APeerTakesWhatItIsFasterForOrTheHostIsShortOf) {
  options_.memory[Tier::peer] = Bytes(kMuch);
  peer_ = 20e9;  // the link has half of it
  EXPECT_FALSE(peaks(kFast)[Tier::peer].is_zero());
  EXPECT_TRUE(peaks(kFast)[Tier::host].is_zero() && peaks(kFast)[Tier::disk].is_zero());
  peer_ = 5e9;
  const PerTier<Bytes> slower = peaks(kFast);
  EXPECT_FALSE(slower[Tier::peer].is_zero());
  EXPECT_TRUE(slower[Tier::disk].is_zero());
  options_.memory[Tier::host].reset();
  EXPECT_TRUE(peaks(kFast)[Tier::peer].is_zero());
}

TEST_F(Behind, WhatAPeerHasNoRoomForGoesOn) {
  peer_ = 20e9;
  options_.memory[Tier::peer] = Bytes(all_.count() / 2 / kAlignment * kAlignment);
  const PerTier<Bytes> found = peaks(kFast);
  EXPECT_FALSE(found[Tier::peer].is_zero() || found[Tier::disk].is_zero());
  EXPECT_LE(found[Tier::peer], *options_.memory[Tier::peer]);
}

// There is no host memory at all.
TEST_F(Behind, APeerCanBeAllThereIs) {
  options_ = {};
  options_.memory[Tier::host] = Bytes();
  EXPECT_EQ(plan(kFast).short_of, Tier::host);
  options_.memory[Tier::peer] = Bytes(kMuch);
  const PerTier<Bytes> found = peaks(kFast);
  EXPECT_FALSE(found[Tier::peer].is_zero());
  EXPECT_TRUE(found[Tier::host].is_zero());
  options_.memory[Tier::peer] = found[Tier::peer] - Bytes(kAlignment);
  EXPECT_FALSE(plan(kFast).plan);
}

}  // namespace
}  // namespace tide
