// Each rank keeps a part of the state, and trains the model that it trains with all of it.
#include <gtest/gtest.h>

#include "step/buckets.h"
#include "step/build.h"
#include "train/rank_jobs.h"

namespace tide {
namespace {

using test::distance;
using test::expect_one_model;
using test::RankJob;
using test::train_on;
using test::Trained;

TEST(ShardedRanks, TrainTheSameModel) {
  for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::adam}) {
    RankJob job;
    job.samples = 21;
    job.options.optimizer.kind = optimizer;
    job.options.ranks.least_to_shard = Bytes(100);
    for (const double clip : {0.0, 0.1}) {
      job.options.optimizer.clip_norm = clip;
      for (const int ranks : {2, 3, 4}) {
        if (job.global_batch % ranks != 0) job.global_batch = 2 * ranks;
        job.options.ranks.shard = Shard::none;
        const std::vector<Trained> whole = train_on(ranks, job);
        for (const Shard shard : {Shard::optimizer, Shard::parameters}) {
          job.options.ranks.shard = shard;
          const std::vector<Trained> together = train_on(ranks, job);
          expect_one_model(together);
          EXPECT_LT(distance(together[0].state, whole[0].state), 5e-6)
              << optimizer_name(optimizer) << ", " << ranks << " ranks, " << shard_name(shard) << ", clip " << clip;
          EXPECT_NEAR(together[0].validation->loss, whole[0].validation->loss, 1e-5);
          EXPECT_EQ(together[0].validation->loss, together[1].validation->loss);
        }
        job.global_batch = 8;
      }
    }
  }
}

TEST(ShardedRanks, GiveTheSameBitsUnderEveryPolicy) {
  for (const Shard shard : {Shard::optimizer, Shard::parameters}) {
    RankJob job;
    job.network = test::small_network();
    job.epochs = 1;
    job.options.optimizer.kind = OptimizerKind::adam;
    job.options.ranks.shard = shard;
    job.options.ranks.least_to_shard = Bytes(100);
    const std::vector<Trained> expected = train_on(2, job);
    SharedLink link(50e6);
    for (const Policy& policy : policies()) {
      RankJob within = job;
      within.options.policy = policy.name;
      within.options.executor.guard = false;
      within.options.executor.shared_link = &link;
      const auto ranks = make_thread_ranks(2);
      within.options.ranks.communicator = ranks[0].get();
      within.options.ranks.bucket = Bytes(1000);
      const auto answer = plan_network(job.network, {4, true}, within.options);
      within.options.planner.memory[Tier::device] = answer.floor[Tier::device] + Bytes(4096);
      const std::vector<Trained> together = train_on(2, within);
      EXPECT_TRUE(test::same(together[0].state, expected[0].state)) << policy.name << ", " << shard_name(shard);
      EXPECT_TRUE(test::same(together[1].state, expected[1].state)) << policy.name << ", " << shard_name(shard);
    }
  }
}

// The bits of what is not sharded, too: sums follow the same tree, and updates are element by element.
TEST(ShardedRanks, KeepAFixedOrder) {
  RankJob job;
  job.network = test::small_network();
  job.global_batch = 16;
  job.samples = 29;
  job.options.ranks.leaves = 8;
  job.options.ranks.least_to_shard = Bytes(100);
  const Trained alone = train_on(1, job)[0];
  for (const Shard shard : {Shard::optimizer, Shard::parameters}) {
    job.options.ranks.shard = shard;
    for (const int ranks : {1, 2, 4})
      EXPECT_TRUE(test::same(train_on(ranks, job)[0].state, alone.state)) << ranks << " " << shard_name(shard);
  }
  job.options.optimizer.clip_norm = 1;
  EXPECT_THROW(static_cast<void>(train_on(2, job)), Error);
}

TEST(ShardedRanks, MayRoundTheirSums) {
  RankJob job;
  job.options.ranks.least_to_shard = Bytes(100);
  const Trained exact = train_on(4, job)[0];
  job.options.ranks.wire = DataType::bf16;
  for (const Shard shard : {Shard::optimizer, Shard::parameters}) {
    job.options.ranks.shard = shard;
    const std::vector<Trained> rounded = train_on(4, job);
    expect_one_model(rounded);
    EXPECT_GT(distance(rounded[0].state, exact.state), 0);
    EXPECT_LT(distance(rounded[0].state, exact.state), 1e-2);
  }
}

// Ranks may cut their batches into different numbers of parts, each of which would need the others' parameters.
TEST(ShardedRanks, CutBatchesWhereEachHasAllParameters) {
  RankJob job;
  job.options.ranks.least_to_shard = Bytes(100);
  const Trained whole = train_on(2, job)[0];
  job.options.planner.batch = SubBatches{.samples = 2};
  job.options.ranks.shard = Shard::optimizer;
  const std::vector<Trained> together = train_on(2, job);
  expect_one_model(together);
  EXPECT_LT(distance(together[0].state, whole.state), 2e-6);
  job.options.ranks.shard = Shard::parameters;
  EXPECT_THROW(static_cast<void>(train_on(2, job)), Error);
}

// Of what lasts, a rank has what is not sharded and one of as many equal shares of each bucket as there are ranks.
TEST(ShardedRanks, KeepAsManyBytesAsTheirShare) {
  const NetworkPtr network = test::independent_network();
  const auto lasting = [&](int count, Shard shard, TensorClass tensor_class) {
    StepOptions options{.batch = 4, .optimizer = {.kind = OptimizerKind::adam}};
    options.ranks = {.count = count, .bucket = Bytes(4000), .shard = shard, .least_to_shard = Bytes(500)};
    Bytes sum;
    for (const Storage& storage : build_step(network, options).storages)
      if (storage.persistent && storage.tensor_class == tensor_class) sum += storage.bytes;
    return sum;
  };
  for (const int ranks : {2, 4, 8}) {
    Bytes small, sharded, shares;  // of parameters; the last with what their buckets are rounded up by
    const RankOptions options{
        .count = ranks, .bucket = Bytes(4000), .shard = Shard::optimizer, .least_to_shard = Bytes(500)};
    for (const BucketContent& bucket : buckets_of(*network, options)) {
      Bytes filled;
      for (const ParameterId id : bucket.parameters) {
        const Bytes bytes = bytes_of(network->parameters[id.index()].shape, DataType::f32);
        (bucket.sharded ? sharded : small) += bytes;
        filled += bytes.aligned();
      }
      if (bucket.sharded) shares += share_of_bucket(filled, ranks);
    }
    EXPECT_FALSE(sharded.is_zero());
    EXPECT_FALSE(small.is_zero());
    EXPECT_EQ(lasting(ranks, Shard::none, TensorClass::parameter), small + sharded);
    EXPECT_EQ(lasting(ranks, Shard::none, TensorClass::optimizer_state), (small + sharded) * 2);
    EXPECT_EQ(lasting(ranks, Shard::optimizer, TensorClass::parameter), small + shares * ranks);
    EXPECT_EQ(lasting(ranks, Shard::optimizer, TensorClass::optimizer_state), (small + shares) * 2);
    EXPECT_EQ(lasting(ranks, Shard::parameters, TensorClass::parameter), small + shares);
    EXPECT_EQ(lasting(ranks, Shard::parameters, TensorClass::optimizer_state), (small + shares) * 2);
  }
}

TEST(ShardedRanks, GoOnFromACheckpointOnAnyNumberOfRanks) {
  RankJob job;
  job.options.optimizer.kind = OptimizerKind::adam;
  job.options.ranks.least_to_shard = Bytes(100);
  job.options.ranks.shard = Shard::parameters;
  const std::vector<NamedTensor> saved = train_on(4, job)[0].state;
  for (const int ranks : {1, 2}) {
    on_thread_ranks(ranks, [&](Communicator& communicator) {
      SessionOptions options = job.options;
      options.ranks.shard = Shard::optimizer;
      if (ranks > 1) options.ranks.communicator = &communicator;
      const test::SessionPtr session = test::open_session(job.network, {{2, true}}, options);
      session->restore_from_first(communicator.rank() == 0 ? saved : std::vector<NamedTensor>(), 6);
      EXPECT_EQ(session->steps_done(), 6U);
      EXPECT_TRUE(test::same(session->state(), saved));
    });
  }
}

}  // namespace
}  // namespace tide
