// Several ranks on the one GPU there is: what NCCL does in a recorded step, and sums that go over the host.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/nccl_collectives.h"
#include "executor/executor.h"
#include "executor/host_collectives.h"
#include "planner/policy.h"
#include "planner/search/search.h"
#include "step/build.h"
#include "support/alone.h"
#include "support/on_device.h"
#include "support/rank_threads.h"
#include "train/initialize.h"
#include "train/small_session.h"

namespace tide {
namespace {

bool has_gpu() {
  try {
    static_cast<void>(make_backend("cuda"));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Parameters after a few steps, as bytes of floats.
std::vector<float> trained(Backend& backend, Collectives& collectives, bool late) {
  const NetworkPtr network = test::small_network();
  StepOptions options{.batch = 8};
  options.ranks = {.count = 2, .bucket = Bytes(1000), .late_updates = late};
  Step step = build_step(network, options);
  backend.annotate(step);
  const RooflineModel cost(generic_cpu());
  const Plan plan = *make_plan(find_policy("liveness"), step, cost, test::on_device()).plan;
  Arena arena(backend, summarize(plan).peak[Tier::device]);
  ExecutorOptions executor_options;
  executor_options.collectives = &collectives;
  const std::unique_ptr<Executor> executor = make_executor(plan, backend, Tiers(arena), executor_options);
  EXPECT_EQ(executor->is_recorded(), collectives.records());
  std::vector<TensorId> parameters;
  for (const Storage& storage : executor->step().storages)
    if (storage.persistent && storage.entry.valid() && executor->step().tensor(storage.entry).parameter.valid())
      parameters.push_back(storage.entry);
  for (const TensorId id : parameters) {
    const Tensor& tensor = executor->step().tensor(id);
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()), 0.0F);
    if (tensor.tensor_class != TensorClass::optimizer_state) values = initial_values(*network, tensor.parameter, 5);
    executor->write(id, values);
  }
  for (std::uint64_t s = 0; s < 4; ++s) {
    for (std::size_t i = 0; i < executor->input().size(); ++i)
      executor->input()[i] = static_cast<float>((i * 7 + s) % 13) / 13.0F;
    for (std::size_t i = 0; i < executor->labels().size(); ++i)
      executor->labels()[i] = static_cast<std::int32_t>((i + s) % 10);
    executor->run({.seed = 3,
                   .step = s,
                   .learning_rate = 0.05,
                   .update_count = static_cast<std::int64_t>(s) + 1,
                   .global_batch = 8});
  }
  std::vector<float> all;
  for (const TensorId id : parameters) {
    std::vector<float> values(static_cast<std::size_t>(executor->step().tensor(id).shape.elements()));
    executor->read(id, values);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// Its sums over one rank are what they were: with them, recorded, as without.
TEST(GpuRanks, NcclIsPartOfARecordedStep) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  if (!has_nccl()) GTEST_SKIP() << "this build has no NCCL";
  const std::unique_ptr<Backend> backend = make_backend("cuda");
  const std::unique_ptr<Collectives> nccl = make_nccl_collectives(*backend, {.hand_out = {}});
  const std::unique_ptr<Backend> plain_backend = make_backend("cuda");
  const std::vector<std::unique_ptr<Communicator>> one = make_thread_ranks(1);
  const std::unique_ptr<Collectives> host = make_host_collectives(*one[0], *plain_backend);
  for (const bool late : {false, true}) {
    const std::vector<float> by_nccl = trained(*backend, *nccl, late);
    EXPECT_EQ(by_nccl, trained(*plain_backend, *host, late));
    for (const float value : by_nccl) ASSERT_TRUE(std::isfinite(value));
  }
}

// Two ranks as threads, each with a backend of its own on the same GPU.
TEST(GpuRanks, SumOverTheHost) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  const DatasetPtr data = test::first_digits(32);
  const auto train_on = [&](int ranks) {
    std::vector<NamedTensor> state;
    test::on_thread_ranks(ranks, [&](Communicator& communicator) {
      SessionOptions options = test::session_options();
      options.backend = "cuda";
      options.precision = Precision::fp32;
      options.executor.guard = false;
      if (ranks > 1) options.ranks.communicator = &communicator;
      options.ranks.bucket = Bytes(1000);
      TrainingOptions training{.batch = 16 / ranks, .epochs = 2};
      training.schedule.base = 0.05;
      Builder net("plain");
      Value x = net.input({1, 1, 8, 8}, "in");
      x = net.relu(net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}, "conv1"));
      net.softmax_cross_entropy(net.fully_connected(x, {.channels = 10}, "fc"), {}, "softmax");
      const test::SessionPtr session =
          test::open_session(std::make_shared<const Network>(std::move(net).build()),
                             training_variants(training, *data, nullptr, options.ranks), options);
      train(*session, training, *data);
      if (communicator.rank() == 0) state = session->state();
    });
    return state;
  };
  const std::vector<NamedTensor> alone = train_on(1), together = train_on(2);
  ASSERT_EQ(alone.size(), together.size());
  for (std::size_t t = 0; t < alone.size(); ++t)
    for (std::size_t i = 0; i < alone[t].values.size(); ++i)
      EXPECT_NEAR(alone[t].values[i], together[t].values[i], 1e-5) << alone[t].name;
}

}  // namespace
}  // namespace tide
