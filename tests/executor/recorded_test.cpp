// Steps on a device that runs by itself, without having one: its memory is hidden from the
// executor, and what is recorded runs at launch in any order that lanes and waits allow.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "executor/job.h"
#include "planner/policies/superneurons.h"
#include "support/random_network.h"

namespace tide {
namespace {

class ShufflingQueue final : public StepQueue {
 public:
  explicit ShufflingQueue(const StepState& state, std::uint32_t seed) : state_(state), random_(seed) {}
  void wait(int lane, std::size_t op) override {
    EXPECT_TRUE(index_.contains(op)) << "a wait for an op that comes later";
    pending_[lane].insert(index_.at(op));
  }
  void run(std::size_t op, const Kernel& kernel, const Launch& launch) override {
    add(0, op, [this, kernel, launch] { kernel({launch.operands, launch.workspace, &state_}); });
  }
  void copy(int lane, std::size_t op, std::byte* to, const std::byte* from, Bytes bytes) override {
    EXPECT_NE(lane, 0);
    add(lane, op, [=] { std::copy_n(from, bytes.size(), to); });
  }
  void finish() override { finished_ = true; }
  void launch() override {
    EXPECT_TRUE(finished_);
    std::vector<std::size_t> missing;
    std::set<std::size_t> ready;
    for (const Node& node : nodes_) missing.push_back(node.after.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (missing[i] == 0) ready.insert(i);
    while (!ready.empty()) {
      const std::size_t next = *std::next(ready.begin(), static_cast<std::ptrdiff_t>(random_() % ready.size()));
      ready.erase(next);
      nodes_[next].work();
      for (std::size_t i = next + 1; i < nodes_.size(); ++i)
        if (nodes_[i].after.contains(next) && --missing[i] == 0) ready.insert(i);
    }
  }
  void synchronize() override {}
  [[nodiscard]] Span span(std::size_t op) const override {
    return {static_cast<double>(index_.at(op)), static_cast<double>(index_.at(op)) + 1};
  }

 private:
  struct Node {
    std::function<void()> work;
    std::set<std::size_t> after;
  };
  void add(int lane, std::size_t op, std::function<void()> work) {
    Node node{std::move(work), std::exchange(pending_[lane], {})};
    if (const auto last = last_.find(lane); last != last_.end()) node.after.insert(last->second);
    last_[lane] = index_[op] = nodes_.size();
    nodes_.push_back(std::move(node));
  }

  const StepState& state_;
  std::mt19937 random_;
  std::vector<Node> nodes_;
  std::map<std::size_t, std::size_t> index_;
  std::map<int, std::size_t> last_;
  std::map<int, std::set<std::size_t>> pending_;
  bool finished_ = false;
};

class RecordingBackend final : public Backend {
 public:
  explicit RecordingBackend(std::uint32_t seed) : seed_(seed) {}
  [[nodiscard]] std::string_view name() const override { return real_->name(); }
  [[nodiscard]] std::string description() const override { return real_->description(); }
  void annotate(Step& step) const override { real_->annotate(step); }
  [[nodiscard]] Kernel prepare(const Step& step, TaskId task, std::size_t algorithm) override {
    return real_->prepare(step, task, algorithm);
  }
  void write_tensor(const Step& step, TensorId tensor, std::span<const float> values, std::byte* address) override {
    real_->write_tensor(step, tensor, values, address);
  }
  void read_tensor(const Step& step, TensorId tensor, const std::byte* address, std::span<float> values) override {
    real_->read_tensor(step, tensor, address, values);
  }
  [[nodiscard]] std::byte* allocate(Bytes bytes) override { return real_->allocate(bytes); }
  void release(std::byte* memory, Bytes bytes) noexcept override { real_->release(memory, bytes); }
  [[nodiscard]] bool host_addressable() const override { return false; }
  void begin_step(const StepState& state) override { state_ = state; }
  [[nodiscard]] std::unique_ptr<StepQueue> make_queue(bool /*record_times*/) override {
    return std::make_unique<ShufflingQueue>(state_, seed_);
  }

 private:
  std::unique_ptr<Backend> real_ = make_backend("reference");
  StepState state_;
  std::uint32_t seed_;
};

constexpr std::int64_t kBatch = 2;

TEST(RecordedStep, GivesTheBitsOfAStepRunOpByOp) {
  bool moved = false, recomputed = false;
  for (const std::uint32_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    SCOPED_TRACE(seed);
    const NetworkPtr network = testing_support::random_network(seed);
    const test::ParameterValues values = test::formula_values(*network);
    RecordingBackend recording(seed);
    const std::unique_ptr<Backend> plain = make_backend("reference");
    test::Job baseline(test::plan_for(network, *plain, "baseline", test::training_step(kBatch)), *plain);
    baseline.set_state(values);
    const double loss = baseline.run_steps(3);
    for (const char* const policy : {"baseline", "liveness", "offload", "superneurons"}) {
      SCOPED_TRACE(policy);
      PlannerOptions options;
      options.policy.set<SuperneuronsOptions>().cache = false;
      const PlanResult result = test::result_for(network, recording, policy, test::training_step(kBatch), options);
      const PlanSummary summary = summarize(*result.plan);
      test::Job job(*result.plan, recording, {.guard = true, .record = true});
      EXPECT_TRUE(job.executor().is_recorded());
      job.set_state(values);
      EXPECT_EQ(job.run_steps(3), loss);
      EXPECT_EQ(job.state_hash(), baseline.state_hash());
      EXPECT_EQ(job.executor().high_water(), summary.peak[Tier::device]);
      EXPECT_EQ(job.executor().copied_out(), summary.offloaded_bytes);
      EXPECT_EQ(job.executor().copied_in(), summary.prefetched_bytes);
      const Timeline& timeline = job.executor().timeline();
      ASSERT_EQ(timeline.spans.size(), result.plan->phases.front().ops.size());
      for (std::size_t i = 0; i < timeline.spans.size(); ++i)
        EXPECT_EQ(timeline.spans[i].start, static_cast<double>(i)) << "from the queue, op by op";
      moved = moved || !summary.offloaded_bytes.is_zero();
      recomputed = recomputed || summary.recomputed_tasks > 0;
    }
  }
  EXPECT_TRUE(moved);
  EXPECT_TRUE(recomputed);
}

// The next batch may be filled in while the device works: a started step has its own copy.
TEST(RecordedStep, InputsAreSentBeforeTheStepStarts) {
  const NetworkPtr network = testing_support::random_network(2);
  RecordingBackend backend(1);
  const Plan plan = test::plan_for(network, backend, "liveness", test::training_step(kBatch));
  test::Job together(plan, backend), ahead(plan, backend);
  for (test::Job* const job : {&together, &ahead}) job->set_state(test::formula_values(*network));
  together.run_steps(3);
  ahead.set_batch(0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ahead.executor().start(ahead.state(i, 0.01));
    ahead.set_batch(static_cast<std::int64_t>(i) + 1);
    ahead.executor().finish();
  }
  EXPECT_EQ(ahead.executor().metric().loss, together.executor().metric().loss);
  EXPECT_EQ(ahead.state_hash(), together.state_hash());
}

// A slowed-down link needs the host between the copies.
TEST(RecordedStep, RunsOpByOpBehindASlowedDownLink) {
  const NetworkPtr network = testing_support::random_network(1);
  RecordingBackend backend(1);
  const Plan plan = test::plan_for(network, backend, "liveness", test::training_step(kBatch));
  test::Job recorded(plan, backend), slowed(plan, backend, {.guard = true, .link_bytes_per_second = 1e9});
  EXPECT_FALSE(slowed.executor().is_recorded());
  for (test::Job* const job : {&recorded, &slowed}) job->set_state(test::formula_values(*network));
  recorded.run_steps(2);
  slowed.run_steps(2);
  EXPECT_EQ(slowed.state_hash(), recorded.state_hash());
}

}  // namespace
}  // namespace tide
