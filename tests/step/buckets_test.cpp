#include "step/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "network/builder.h"
#include "step/build.h"
#include "support/random_network.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

// What the ranks sum, in order: the parameters of each bucket.
std::vector<std::vector<ParameterId>> reductions(const Step& step) {
  std::vector<std::vector<ParameterId>> result;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    if (step.tasks[t].kind != TaskKind::reduce) continue;
    const StorageId bucket = step.tensor(step.operands_of(TaskId(t)).front().tensor).storage;
    std::vector<std::pair<Bytes, ParameterId>> parts;
    for (const Operand& operand : step.operands)
      if (operand.view.valid() && step.tensor(operand.tensor).storage == bucket)
        parts.emplace_back(step.view(operand.view).offset, step.view(operand.view).parameter);
    std::ranges::sort(parts);
    parts.erase(std::ranges::unique(parts).begin(), parts.end());
    result.emplace_back();
    for (const auto& [offset, parameter] : parts) result.back().push_back(parameter);
  }
  return result;
}

TEST(Buckets, HoldEveryTrainedParameterOnceLastFirst) {
  const NetworkPtr network = std::make_shared<Network>(make_model("resnet18"));
  const auto buckets = buckets_of(*network, {.count = 2, .bucket = Bytes(4 << 20)});
  std::vector<ParameterId> all;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    Bytes bytes, but_last;
    for (const ParameterId id : buckets[b].parameters) {
      but_last = bytes;
      bytes += bytes_of(network->parameters[id.index()].shape, DataType::f32);
      all.push_back(id);
    }
    EXPECT_LT(but_last, Bytes(4 << 20));
    if (b + 1 < buckets.size()) {
      EXPECT_GE(bytes, Bytes(4 << 20));
    }
  }
  EXPECT_GT(buckets.size(), 3U);
  EXPECT_TRUE(std::ranges::is_sorted(all, std::greater()));
  const auto trained = std::ranges::count_if(network->parameters, [](const Parameter& p) { return !p.frozen; });
  EXPECT_EQ(all.size(), static_cast<std::size_t>(trained));
}

// Ranks with other plans must sum the same things: fused or not, in sub-batches, early or late.
TEST(Buckets, AreTheSameInEveryWayToBuildAStep) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const NetworkPtr network = testing_support::random_network(seed);
    const RankOptions ranks{.count = 2, .bucket = Bytes(200), .late_updates = true};
    std::vector<std::vector<ParameterId>> expected;
    for (const BucketContent& bucket : buckets_of(*network, ranks)) expected.push_back(bucket.parameters);
    for (const bool fuse : {false, true})
      for (const bool late : {false, true})
        for (const double clip : {0.0, 1.0})
          for (const std::int64_t sub_batch : {0, 2}) {
            StepOptions options{.batch = 4, .optimizer = {.clip_norm = clip}, .fuse = fuse, .sub_batch = sub_batch};
            options.ranks = ranks;
            options.ranks.late_updates = late;
            EXPECT_EQ(reductions(build_step(network, options)), expected) << "seed " << seed;
          }
    StepOptions rounds{.batch = 2, .part = Part::update, .ranks = ranks};
    EXPECT_EQ(reductions(build_step(network, rounds)), expected);
    rounds.part = Part::later_round;
    EXPECT_TRUE(reductions(build_step(network, rounds)).empty());
  }
}

// What is sharded is gathered and scattered in one order, however much of the step is fused and when it updates.
TEST(Shards, MeetInOneOrderInEveryWayToBuildAStep) {
  int gathered = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const NetworkPtr network = testing_support::random_network(seed);
    for (const Shard shard : {Shard::optimizer, Shard::parameters}) {
      std::optional<std::vector<std::string>> expected;
      for (const bool fuse : {false, true})
        for (const std::int64_t limit : {0, 2000, 20000})
          for (const bool late : {false, true}) {
            StepOptions options{.batch = 4, .fuse = fuse, .fuse_limit = Bytes(limit)};
            options.ranks = {.count = 3, .bucket = Bytes(400), .late_updates = late};
            options.ranks.shard = shard;
            options.ranks.least_to_shard = Bytes(50);
            const Step step = build_step(network, options);
            std::vector<std::string> met;
            for (std::size_t t = 0; t < step.ordered_tasks; ++t)
              if (is_collective(step.tasks[t].kind)) met.push_back(task_name(step, TaskId(t)));
            for (const std::string& name : met) gathered += name.ends_with("gather") ? 1 : 0;
            if (!expected) expected = met;
            EXPECT_EQ(met, *expected) << "seed " << seed << ", " << shard_name(shard);
          }
    }
  }
  EXPECT_GT(gathered, 1000);
}

// Of a network whose frozen layer shares its parameters with one that is trained, and is the first to come back.
TEST(Buckets, AreWholeWhereAFrozenLayerSharesItsParameters) {
  const NetworkPtr network = testing_support::random_network(2488);
  StepOptions options{.batch = 2};
  options.ranks = {.count = 4, .bucket = Bytes(2000), .parts = 8};
  const Step step = build_step(network, options);
  std::set<ParameterId> written;
  for (const Operand& operand : step.operands)
    if (operand.access != Access::read && operand.view.valid() && is_bucket(step.tensor(operand.tensor)))
      written.insert(step.view(operand.view).parameter);
  std::size_t trained = 0;
  for (const BucketContent& bucket : buckets_of(*network, options.ranks)) trained += bucket.parameters.size();
  EXPECT_EQ(written.size(), trained);
}

TEST(Buckets, OfOneRankThereAreNone) {
  const NetworkPtr network = std::make_shared<Network>(make_model("lenet"));
  const Step step = build_step(network, {.batch = 2});
  EXPECT_TRUE(std::ranges::none_of(step.tensors, is_bucket));
  StepOptions evaluation{.batch = 2, .training = false};
  evaluation.ranks.count = 4;
  EXPECT_TRUE(std::ranges::none_of(build_step(network, evaluation).tensors, is_bucket));
}

TEST(Buckets, LeaveRoomForABackendsOwnLayout) {
  const NetworkPtr network = std::make_shared<Network>(make_model("lenet"));
  StepOptions options{.batch = 2};
  options.ranks.count = 2;
  Step step = build_step(network, options);
  lay_out_buckets(step, [](ParameterId id) { return Bytes(1000 + static_cast<std::int64_t>(id.index())); });
  Bytes end;
  std::set<ViewId> seen;
  for (const Operand& operand : step.operands) {
    if (!operand.view.valid() || !seen.insert(operand.view).second) continue;
    const View& view = step.view(operand.view);
    EXPECT_EQ(view.bytes, Bytes(1000 + static_cast<std::int64_t>(view.parameter.index())));
    EXPECT_EQ(view.offset.count() % kAlignment, 0);
    end = std::max(end, view.offset + view.bytes.aligned());
    const Storage& storage = step.storage(step.tensor(operand.tensor).storage);
    EXPECT_LE(view.offset + view.bytes, storage.bytes);
  }
  EXPECT_EQ(seen.size(), network->parameters.size());
}

}  // namespace
}  // namespace tide
