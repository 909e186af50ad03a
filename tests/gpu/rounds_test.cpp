// Batches in sub-batches on the device: the same training as with whole ones, up to the order of sums.
#include "backend/task_runner.h"
#include "train/session.h"
#include "train/small_session.h"
#include "zoo/zoo.h"

namespace tide::test {
namespace {

struct Cut {
  std::string model;
  Shape sample;
  std::int64_t sub_batch;
  bool exact;
  double tolerance;
};

class CudaRounds : public testing::TestWithParam<Cut> {};

// All parameters after one step of plain SGD.
std::vector<std::vector<float>> train_once(Session& session, std::int64_t batch) {
  const Network& network = session.network();
  const DatasetPtr data = synthetic({.sample = network.input_sample(),
                                     .classes = network.classes(),
                                     .labels_per_sample = network.labels_per_sample(),
                                     .size = batch});
  std::vector<std::int64_t> samples(static_cast<std::size_t>(batch));
  std::iota(samples.begin(), samples.end(), 0);
  EXPECT_TRUE(std::isfinite(session.run({batch, true}, *data, samples, 0.5).loss));
  std::vector<std::vector<float>> values;
  for (std::size_t p = 0; p < network.parameters.size(); ++p) values.push_back(session.parameter(ParameterId(p)));
  return values;
}

TEST_P(CudaRounds, TrainLikeTheWholeBatch) {
  if (tested_backend() == nullptr) GTEST_SKIP() << no_backend();
  constexpr std::int64_t kBatch = 7;
  const auto network = std::make_shared<const Network>(make_model(GetParam().model, GetParam().sample));
  SessionOptions options = plain_session();
  options.backend = "cuda";
  options.policy = "liveness";
  options.precision = Precision::fp32;
  options.optimizer.kind = OptimizerKind::sgd;
  const SessionPtr whole = open_session(network, {{kBatch, true}}, options);
  std::vector<std::vector<float>> before;
  for (std::size_t p = 0; p < network->parameters.size(); ++p) before.push_back(whole->parameter(ParameterId(p)));
  const auto wanted = train_once(*whole, kBatch);
  options.planner.batch = SubBatches{.exact_batch_norm = GetParam().exact, .samples = GetParam().sub_batch};
  for (const char* policy : {"liveness", "superneurons", "modnn", "auto"}) {
    SCOPED_TRACE(policy);
    options.policy = policy;
    const SessionPtr cut = open_session(network, {{kBatch, true}}, options);
    EXPECT_EQ(cut->plan({kBatch, true}).numerics, Numerics::reordered);
    const auto found = train_once(*cut, kBatch);
    EXPECT_EQ(cut->executor({kBatch, true}).high_water(), summarize(cut->plan({kBatch, true})).peak[Tier::device]);
    EXPECT_TRUE(cut->executor({kBatch, true}).is_recorded());
    double difference = 0, moved = 0;
    for (std::size_t p = 0; p < wanted.size(); ++p)
      for (std::size_t i = 0; i < wanted[p].size(); ++i) {
        difference += std::pow(static_cast<double>(found[p][i]) - static_cast<double>(wanted[p][i]), 2);
        moved += std::pow(static_cast<double>(before[p][i]) - static_cast<double>(wanted[p][i]), 2);
      }
    EXPECT_GT(moved, 0);
    EXPECT_LE(std::sqrt(difference), GetParam().tolerance * std::sqrt(moved));
  }
}

// Statistics of seven samples and fifty layers of relus magnify what floats round: on the processor, too, a whole batch
// of ResNet50 is 2% from double precision. Statistics of sub-batches would give quite another step.
INSTANTIATE_TEST_SUITE_P(Zoo, CudaRounds,
                         testing::Values(Cut{"vgg16@10", {1, 3, 32, 32}, 2, false, 1e-5},
                                         Cut{"alexnet@10", {1, 3, 67, 67}, 3, false, 1e-5},
                                         Cut{"lstm:2,16,4@11", {1, 24, 1, 1}, 1, false, 1e-5},
                                         Cut{"resnet18@10", {1, 3, 32, 32}, 2, true, 1e-4},
                                         Cut{"resnet50@10", {1, 3, 32, 32}, 3, true, 5e-2}),
                         [](const auto& row) { return "case" + std::to_string(row.index); });

}  // namespace
}  // namespace tide::test
