// Several ranks on the one GPU there is: what NCCL does in a recorded step, and sums that go over the host.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "backend/nccl_collectives.h"
#include "cluster/threads.h"
#include "executor/executor.h"
#include "executor/host_collectives.h"
#include "planner/policy.h"
#include "planner/search/search.h"
#include "step/build.h"
#include "support/alone.h"
#include "support/on_device.h"
#include "train/initialize.h"
#include "train/plan_network.h"
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

// What ranks do together, as a step of its own: so many floats are read, and as many written.
Step collective_step(TaskKind kind, std::int64_t floats) {
  Step step;
  step.layer_names = {"bucket"};
  step.layer_kinds = {LayerKind::relu};
  for (const Access access : {Access::read, Access::write}) {
    const std::size_t index = step.tensors.size();
    step.storages.emplace_back().bytes = bytes_of(Shape{floats}, DataType::f32);
    Tensor& tensor = step.tensors.emplace_back();
    tensor.storage = StorageId(index);
    tensor.layer = LayerId(0);
    tensor.shape = Shape{floats};
    step.operands.push_back({.role = Role::gradient, .access = access, .tensor = TensorId(index)});
  }
  step.tasks.push_back({.kind = kind, .layer = LayerId(0), .operand_count = 2});
  return step;
}

// Of one rank all that is read is its own part; recorded, not recorded, and in place.
TEST(GpuRanks, NcclScattersAndGathers) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  if (!has_nccl()) GTEST_SKIP() << "this build has no NCCL";
  constexpr std::int64_t kFloats = 1000, kBehind = 64;  // behind: nobody's
  const std::unique_ptr<Backend> backend = make_backend("cuda");
  const std::unique_ptr<Collectives> nccl = make_nccl_collectives(*backend, {.hand_out = {}});
  const Bytes bytes(static_cast<std::int64_t>(sizeof(float)) * (kFloats + kBehind));
  std::byte *const from = backend->allocate(bytes), *const to = backend->allocate(bytes);
  std::vector<float> values(kFloats + kBehind), nothing(values.size(), -1.0F), result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 37) - 11.5F;
  for (const TaskKind kind : {TaskKind::scatter, TaskKind::gather})
    for (const bool recorded : {false, true})
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", kind_name(kind), recorded, in_place));
        const Step step = collective_step(kind, kFloats);
        backend->copy(from, reinterpret_cast<const std::byte*>(values.data()), bytes);
        backend->copy(to, reinterpret_cast<const std::byte*>(nothing.data()), bytes);
        std::array<std::byte*, 2> operands{from, in_place ? from : to};
        const StepState state;
        const Launch launch{operands.data(), nullptr, &state};
        const Kernel kernel = nccl->prepare(step, TaskId(0));
        if (recorded) {
          const std::unique_ptr<StepQueue> queue = backend->make_queue(false);
          nccl->record(*queue, 0, step, TaskId(0), launch);
          queue->finish();
          queue->launch();
          queue->synchronize();
        } else {
          kernel(launch);
        }
        backend->copy(reinterpret_cast<std::byte*>(result.data()), operands[1], bytes);
        for (std::size_t i = 0; i < result.size(); ++i)
          ASSERT_EQ(result[i], in_place || i < kFloats ? values[i] : nothing[i]) << i;
      }
  backend->release(from, bytes);
  backend->release(to, bytes);
}

// Where samples meet, where chance depends on them, and where layers would be fused.
NetworkPtr residual_network() {
  Builder net("residual");
  Value x = net.input({1, 1, 8, 8}, "in");
  x = net.convolution(x, {.channels = 8, .window = Window::square(3, 1, 1)}, "conv1");
  x = net.relu(net.batch_norm(x, {}, "norm1"), "relu1");
  const Value y = net.convolution(x, {.channels = 8, .window = Window::square(3, 1, 1), .bias = false}, "conv2");
  x = net.relu(net.add({net.batch_norm(y, {}, "norm2"), x}, "add"), "relu2");
  x = net.max_pool(x, {.window = Window::square(2, 2)}, "pool");
  x = net.convolution(x, {.channels = 20, .window = Window::square(3, 1, 1)}, "conv3");
  x = net.dropout(net.relu(net.batch_norm(x, {}, "norm3"), "relu3"), {.rate = 0.3}, "dropout");
  x = net.relu(net.fully_connected(x, {.channels = 33}, "fc1"), "relu4");
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 10}, "fc2"), {}, "softmax");
  return std::make_shared<const Network>(std::move(net).build());
}

SessionOptions gpu_options(Precision precision = Precision::fp32) {
  SessionOptions options = test::session_options();
  options.backend = "cuda";
  options.precision = precision;
  options.executor.guard = false;
  options.ranks.bucket = Bytes(1000);
  return options;
}

// What a few steps of 16 samples make of everything, on ranks that are threads, each with a backend of its own on the
// same GPU. `tight`: with little more memory than it takes.
std::vector<NamedTensor> train_on(int ranks, const NetworkPtr& network, const SessionOptions& given,
                                  bool tight = false) {
  const DatasetPtr data = test::first_digits(48);
  std::vector<std::unique_ptr<Communicator>> all = make_thread_ranks(ranks);
  std::vector<std::vector<NamedTensor>> states(all.size());
  TrainingOptions training{.batch = 16 / ranks, .epochs = 2};
  training.schedule.base = 0.05;
  const auto options_of = [&](Communicator& communicator) {
    SessionOptions options = given;
    if (ranks > 1) options.ranks.communicator = &communicator;
    return options;
  };
  std::optional<Bytes> budget;
  if (tight) {
    const Bytes floor = plan_network(network, {training.batch, true}, options_of(*all[0])).floor[Tier::device];
    budget = floor + Bytes(floor.count() / 8);
  }
  const auto train_one = [&](Communicator& communicator) {
    SessionOptions options = options_of(communicator);
    options.planner.memory[Tier::device] = budget;
    const test::SessionPtr session =
        test::open_session(network, training_variants(training, *data, nullptr, options.ranks), options);
    train(*session, training, *data);
    states[static_cast<std::size_t>(communicator.rank())] = session->state();
  };
  on_ranks(all, train_one, true);
  for (const std::vector<NamedTensor>& state : states) EXPECT_TRUE(test::same(state, states[0]));  // one model
  return states[0];
}

double distance(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  double most = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t t = 0; t < a.size(); ++t)
    for (std::size_t i = 0; i < a[t].values.size(); ++i)
      most = std::max(most, static_cast<double>(std::abs(a[t].values[i] - b[t].values[i])));
  return most;
}

TEST(GpuRanks, SumOverTheHost) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  Builder net("plain");
  Value x = net.input({1, 1, 8, 8}, "in");
  x = net.relu(net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}, "conv1"));
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 10}, "fc"), {}, "softmax");
  const auto network = std::make_shared<const Network>(std::move(net).build());
  EXPECT_LT(distance(train_on(1, network, gpu_options()), train_on(2, network, gpu_options())), 1e-5);
}

TEST(GpuRanks, ShareTheirStatisticsWhenAsked) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  const NetworkPtr network = residual_network();
  const std::vector<NamedTensor> alone = train_on(1, network, gpu_options());
  SessionOptions options = gpu_options();
  options.ranks.sync_batch_norm = true;
  for (const int ranks : {2, 4}) EXPECT_LT(distance(train_on(ranks, network, options), alone), 1e-4) << ranks;
}

// Whatever the ranks, the policy and the budget.
TEST(GpuRanks, GiveTheSameBitsInAFixedOrder) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  const NetworkPtr network = residual_network();
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    SessionOptions options = gpu_options(precision);
    options.fuse = true;
    options.policy = "baseline";
    const std::vector<NamedTensor> whole = train_on(1, network, options);
    options.ranks.leaves = 8;
    const std::vector<NamedTensor> wanted = train_on(1, network, options);
    if (precision == Precision::fp32) {
      EXPECT_LT(distance(wanted, whole), 1e-4);  // of one step over all samples
    }
    for (const int ranks : {1, 2, 4})
      for (const char* policy : {"baseline", "auto"}) {
        options.policy = policy;
        const bool tight = options.policy == "auto";
        EXPECT_TRUE(test::same(train_on(ranks, network, options, tight), wanted))
            << ranks << " ranks, " << policy << ", " << precision_name(precision);
      }
  }
}

// Each rank keeps a part of the state: the bits of one that has all of it.
TEST(GpuRanks, KeepSharesOfTheirState) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  const NetworkPtr network = residual_network();
  SessionOptions options = gpu_options();
  options.optimizer.kind = OptimizerKind::adam;
  options.ranks.leaves = 8;
  options.ranks.least_to_shard = Bytes(100);
  const std::vector<NamedTensor> wanted = train_on(1, network, options);
  for (const Shard shard : {Shard::optimizer, Shard::parameters})
    for (const int ranks : {2, 4})
      for (const bool tight : {false, true}) {
        options.ranks.shard = shard;
        options.policy = tight ? "auto" : "liveness";
        EXPECT_TRUE(test::same(train_on(ranks, network, options, tight), wanted))
            << ranks << " ranks, " << shard_name(shard) << ", " << options.policy;
      }
}

}  // namespace
}  // namespace tide
