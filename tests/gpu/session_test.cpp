// Whole trainings on the device: every policy at every budget gives the bits of `baseline`, moves
// what its plan says and stays within its peak.
#include "train/session.h"

#include "backend/task_runner.h"
#include "executor/measure.h"
#include "planner/policies/superneurons.h"
#include "train/small_session.h"
#include "zoo/zoo.h"

namespace tide::test {
namespace {

SessionOptions cuda_options(const std::string& policy) {
  SessionOptions options = plain_session();
  options.backend = "cuda";
  options.policy = policy;
  return options;
}

DatasetPtr noise_for(const Network& network) {
  return synthetic({.sample = network.input_sample(),
                    .classes = network.classes(),
                    .labels_per_sample = network.labels_per_sample(),
                    .size = 64});
}

// Three steps, the second and third read ahead; the hash of all weights.
std::uint64_t train(Session& session, const StepVariant& variant) {
  const DatasetPtr data = noise_for(session.network());
  std::vector<std::int64_t> samples(static_cast<std::size_t>(variant.batch)), next = samples;
  for (std::int64_t i = 0; i < 3; ++i) {
    std::iota(samples.begin(), samples.end(), i * variant.batch);
    std::iota(next.begin(), next.end(), (i + 1) * variant.batch);
    EXPECT_TRUE(std::isfinite(session.run(variant, *data, samples, 0.01, next).loss));
  }
  return session.weights_hash();
}

void expect_as_planned(Session& session, const StepVariant& variant) {
  const PlanSummary summary = summarize(session.plan(variant));
  const Executor& executor = session.executor(variant);
  EXPECT_TRUE(executor.is_recorded());
  EXPECT_EQ(executor.high_water(), summary.peak[Tier::device]);
  EXPECT_EQ(executor.copied_out(), summary.offloaded_bytes);
  EXPECT_EQ(executor.copied_in(), summary.prefetched_bytes);
}

struct NetworkEntry {
  std::string name;
  Shape sample;
  Precision precision = Precision::tf32;
  bool fuse = true;
  bool recomputes = true;  // has layers that superneurons runs again
};

class CudaSession : public testing::TestWithParam<NetworkEntry> {
 protected:
  void SetUp() override {
    if (tested_backend() == nullptr) GTEST_SKIP() << no_backend();
    network_ = std::make_shared<const Network>(make_model(GetParam().name, GetParam().sample));
  }
  static SessionOptions options_for(const std::string& policy) {
    SessionOptions options = cuda_options(policy);
    options.fuse = GetParam().fuse;
    options.precision = GetParam().precision;
    return options;
  }
  // The result's floor where there is no plan.
  std::variant<SessionPtr, PlanResult> open(const SessionOptions& options) {
    return Session::open(network_, {kVariant}, options);
  }
  static constexpr StepVariant kVariant{4, true};
  NetworkPtr network_;
};

TEST_P(CudaSession, EveryPolicyAndBudgetGivesTheBitsOfBaseline) {
  const SessionPtr baseline = open_session(network_, {kVariant}, options_for("baseline"));
  const std::uint64_t wanted = train(*baseline, kVariant);
  expect_as_planned(*baseline, kVariant);
  const SessionPtr liveness = open_session(network_, {kVariant}, options_for("liveness"));
  EXPECT_EQ(train(*liveness, kVariant), wanted);
  expect_as_planned(*liveness, kVariant);
  const std::int64_t top = summarize(liveness->plan(kVariant)).peak[Tier::device].count();

  struct Technique {
    std::string policy;
    Recompute recompute;
    bool cache;
  };
  bool moved = false, recomputed = false;
  for (const Technique& technique :
       {Technique{"offload", Recompute::none, true}, Technique{"superneurons", Recompute::none, true},
        Technique{"superneurons", Recompute::speed, true}, Technique{"superneurons", Recompute::memory, true},
        Technique{"superneurons", Recompute::cost_aware, true}, Technique{"superneurons", Recompute::cost_aware, false},
        Technique{"modnn", Recompute::cost_aware, true}, Technique{"auto", Recompute::cost_aware, true}}) {
    SessionOptions options = options_for(technique.policy);
    options.planner.policy.set<SuperneuronsOptions>().recompute = technique.recompute;
    options.planner.policy.set<SuperneuronsOptions>().cache = technique.cache;
    options.planner.memory[Tier::device] = Bytes(1);
    auto refused = open(options);
    ASSERT_TRUE(std::holds_alternative<PlanResult>(refused));
    const std::int64_t floor = std::get<PlanResult>(refused).floor[Tier::device].count();
    for (const int percent : {0, 25, 75}) {
      SCOPED_TRACE(fmt::format("{} {} at {}%", technique.policy, recompute_name(technique.recompute), percent));
      options.planner.memory[Tier::device] = Bytes(floor + std::max<std::int64_t>(top - floor, 0) / 100 * percent);
      auto opened = open(options);
      ASSERT_TRUE(std::holds_alternative<SessionPtr>(opened));
      Session& session = *std::get<SessionPtr>(opened);
      EXPECT_EQ(train(session, kVariant), wanted);
      expect_as_planned(session, kVariant);
      EXPECT_LE(session.arena_bytes(), *options.planner.memory[Tier::device]);
      const PlanSummary summary = summarize(session.plan(kVariant));
      moved = moved || !summary.offloaded_bytes.is_zero();
      recomputed = recomputed || summary.recomputed_tasks > 0;
    }
  }
  EXPECT_TRUE(moved);
  EXPECT_EQ(recomputed, GetParam().recomputes);
}

INSTANTIATE_TEST_SUITE_P(Nets, CudaSession,
                         testing::Values(NetworkEntry{"alexnet", {1, 3, 67, 67}},
                                         NetworkEntry{"lstm:2,64,5", {1, 50, 1, 1}, Precision::tf32, true, false},
                                         NetworkEntry{"resnet50", {1, 3, 64, 64}},
                                         NetworkEntry{"resnet50", {1, 3, 64, 64}, Precision::tf32, false},
                                         NetworkEntry{"inception-v3", {1, 3, 107, 107}},
                                         NetworkEntry{"densenet121", {1, 3, 64, 64}},
                                         NetworkEntry{"alexnet", {1, 3, 67, 67}, Precision::bf16},
                                         NetworkEntry{"lstm:2,64,5", {1, 50, 1, 1}, Precision::bf16, true, false},
                                         NetworkEntry{"resnet50", {1, 3, 64, 64}, Precision::bf16},
                                         NetworkEntry{"inception-v3", {1, 3, 107, 107}, Precision::bf16},
                                         NetworkEntry{"densenet121", {1, 3, 64, 64}, Precision::bf16}),
                         [](const auto& entry) {
                           std::string name = entry.param.name + (entry.param.fuse ? "" : "plain") +
                                              (entry.param.precision == Precision::bf16 ? "bf16" : "");
                           std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
                           return name;
                         });

class CudaTraining : public testing::Test {
 protected:
  void SetUp() override {
    if (tested_backend() == nullptr) GTEST_SKIP() << no_backend();
  }
};

// Dropout, batch norm, a smaller last batch and evaluation in between, within a tight budget.
TEST_F(CudaTraining, LearnsTheDigits) {
  const Split data = split(digits(), 0.2, 1);
  TrainingOptions options;
  options.batch = 32;
  options.epochs = 4;
  options.schedule.base = 0.05;
  struct Silent final : TrainingObserver {
    void on_step(const StepInfo&) override {}
    void on_epoch(const EpochInfo&) override {}
  } silent;
  const std::atomic<bool> stop{false};
  const std::vector<StepVariant> variants = training_variants(options, *data.train, data.validation.get());
  const NetworkPtr network = std::make_shared<const Network>(make_model("digits", std::nullopt));
  SessionOptions session_options = cuda_options("superneurons");
  session_options.planner.memory[Tier::device] = Bytes(1);
  auto refused = Session::open(network, {variants.front()}, session_options);
  session_options.planner.memory[Tier::device] = std::get<PlanResult>(refused).floor[Tier::device];
  const SessionPtr tight = open_session(network, variants, session_options);
  const SessionPtr roomy = open_session(network, variants, cuda_options("baseline"));
  const TrainingReport report = tide::train(*tight, options, *data.train, data.validation.get(), silent, stop);
  tide::train(*roomy, options, *data.train, data.validation.get(), silent, stop);
  EXPECT_EQ(tight->weights_hash(), roomy->weights_hash());
  ASSERT_TRUE(report.validation);
  EXPECT_GE(report.validation->accuracy, 0.93);
}

// Plans with a disk, and with a slowed-down link, run op by op.
TEST_F(CudaTraining, RunsOpByOpWhereAStepCannotBeRecorded) {
  const StepVariant variant{8, true};
  const SessionPtr baseline = open_session(small_network(), {variant}, cuda_options("baseline"));
  run_steps(*baseline, 8, 3);
  SessionOptions options = cuda_options("offload");
  options.planner.policy.set<SuperneuronsOptions>().cache = false;
  options.executor.link_bytes_per_second = 1e9;
  const SessionPtr slowed = open_session(small_network(), {variant}, options);
  run_steps(*slowed, 8, 3);
  EXPECT_FALSE(slowed->executor(variant).is_recorded());
  EXPECT_GT(slowed->executor(variant).copied_out(), Bytes());
  EXPECT_EQ(slowed->weights_hash(), baseline->weights_hash());
  options.executor.link_bytes_per_second = 0;
  options.planner.memory[Tier::host] = Bytes(0);
  options.planner.memory[Tier::disk] = Bytes(1 << 30);
  auto opened = Session::open(small_network(), {variant}, options);
  if (!std::holds_alternative<SessionPtr>(opened)) {  // what passes through needs some host memory
    options.planner.memory[Tier::host] = std::get<PlanResult>(opened).floor[Tier::host];
    opened = Session::open(small_network(), {variant}, options);
  }
  Session& spilling = *std::get<SessionPtr>(opened);
  run_steps(spilling, 8, 3);
  EXPECT_EQ(spilling.weights_hash(), baseline->weights_hash());
}

TEST_F(CudaTraining, RecordsTimesInTheOrderOfThePlan) {
  SessionOptions options = cuda_options("offload");
  options.planner.policy.set<SuperneuronsOptions>().cache = false;
  options.executor.record = true;
  const StepVariant variant{8, true};
  const SessionPtr session = open_session(small_network(), {variant}, options);
  run_steps(*session, 8, 2);
  const Timeline& timeline = session->executor(variant).timeline();
  const Phase& phase = session->plan(variant).phases.front();
  ASSERT_EQ(timeline.spans.size(), phase.ops.size());
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    EXPECT_GE(timeline.spans[i].end, timeline.spans[i].start);
    for (const std::int32_t wait : phase.ops[i].waits)
      EXPECT_GE(timeline.spans[i].start, timeline.spans[static_cast<std::size_t>(wait)].end) << "op " << i;
  }
}

TEST_F(CudaTraining, AProfileHasEveryTask) {
  const SessionPtr session = open_session(small_network(), {{8, true}}, cuda_options("liveness"));
  const Plan& plan = session->plan({8, true});
  MeasureOptions measure;
  measure.runs = 3;
  const Profile profile = measure_profile(*plan.phases.front().step, session->backend(), measure);
  for (const auto& [signature, seconds] : profile.task_seconds) EXPECT_GT(seconds, 0) << signature;
  EXPECT_GT(profile.out.bytes_per_second, 1e8);
  EXPECT_GT(profile.in.bytes_per_second, 1e8);
  const ProfileModel model({profile});
  EXPECT_GT(simulate(plan, model).seconds, 0);
  EXPECT_EQ(model.missing(), 0);
}

}  // namespace
}  // namespace tide::test
