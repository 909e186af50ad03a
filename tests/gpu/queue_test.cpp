// Whole steps recorded as one graph, against the same kernels launched one by one.
#include "backend/network_cases.h"
#include "backend/task_runner.h"

namespace tide::test {
namespace {

class QueueTest : public testing::Test {
 protected:
  void SetUp() override {
    backend_ = tested_backend();
    if (backend_ == nullptr) GTEST_SKIP() << no_backend();
  }
  std::shared_ptr<Backend> backend_;
};

StepPtr step_with_everything(Backend& backend) {
  Builder net("everything");
  Value x = net.convolution(net.input({1, 4, 12, 12}), {.channels = 16, .window = Window::square(3, 1, 1)});
  x = net.max_pool(net.relu(net.batch_norm(x)), {.window = Window::square(2, 2)});
  x = net.add({x, net.convolution(net.tanh(x), {.channels = 16})});
  net.softmax_cross_entropy(net.fully_connected(net.dropout(x), {.channels = 8}));
  StepOptions options = step_options(4);
  options.optimizer.kind = OptimizerKind::adamw;
  options.optimizer.clip_norm = 0.5;
  Step step = build_step(std::make_shared<const Network>(std::move(net).build()), options);
  backend.annotate(step);
  return std::make_shared<const Step>(std::move(step));
}

// Every storage in memory of its own, filled with the same values each time.
class Job {
 public:
  Job(Backend& backend, StepPtr step) : backend_(backend), step_(std::move(step)) {
    for (const Storage& storage : step_->storages) storages_.push_back(backend_.allocate(storage.bytes));
    ReferenceInterpreter values(step_);
    fill_inputs(*step_, values);
    for (std::size_t t = 0; t < step_->tensors.size(); ++t) {
      const Storage& storage = step_->storage(step_->tensors[t].storage);
      if (step_->tensors[t].tensor_class != TensorClass::input && storage.entry != TensorId(t)) continue;
      const std::vector<double> numbers = values.get_logical(TensorId(t));
      const std::vector<float> floats(numbers.begin(), numbers.end());
      backend_.write_tensor(*step_, TensorId(t), floats, address(TensorId(t)));
    }
    for (std::size_t t = 0; t < step_->ordered_tasks; ++t) {
      operands_.emplace_back();
      for (const Operand& operand : step_->operands_of(TaskId(t))) operands_.back().push_back(address(operand.tensor));
      workspaces_.push_back(backend_.allocate(step_->algorithms_of(TaskId(t))[0].workspace));
      kernels_.push_back(backend_.prepare(*step_, TaskId(t), 0));
    }
  }
  ~Job() {
    for (std::byte* memory : storages_) backend_.release(memory, {});
    for (std::byte* memory : workspaces_) backend_.release(memory, {});
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] std::byte* address(TensorId tensor) const { return storages_[step_->tensor(tensor).storage.index()]; }
  [[nodiscard]] std::size_t size() const { return kernels_.size(); }
  [[nodiscard]] const Kernel& kernel(std::size_t task) const { return kernels_[task]; }
  [[nodiscard]] Launch launch(std::size_t task, const StepState* state) const {
    return {operands_[task].data(), workspaces_[task], state};
  }
  void run_one_by_one(const StepState& state) {
    backend_.begin_step(state);
    for (std::size_t t = 0; t < size(); ++t) kernels_[t](launch(t, &state));
  }
  // Parameters, optimizer state, statistics and metrics.
  [[nodiscard]] std::vector<std::vector<float>> persistent() const {
    std::vector<std::vector<float>> all;
    for (const Storage& storage : step_->storages) {
      if (!storage.persistent || !storage.exit.valid()) continue;
      all.emplace_back(static_cast<std::size_t>(step_->tensor(storage.exit).shape.elements()));
      backend_.read_tensor(*step_, storage.exit, address(storage.exit), all.back());
    }
    return all;
  }

 private:
  Backend& backend_;
  StepPtr step_;
  std::vector<std::byte*> storages_, workspaces_;
  std::vector<std::vector<std::byte*>> operands_;
  std::vector<Kernel> kernels_;
};

TEST_F(QueueTest, GivesTheBitsOfSingleLaunches) {
  const StepPtr step = step_with_everything(*backend_);
  Job single(*backend_, step), recorded(*backend_, step);
  const auto queue = backend_->make_queue(false);
  ASSERT_NE(queue, nullptr);
  StepState ignored;  // the recording must not keep it
  for (std::size_t t = 0; t < recorded.size(); ++t)
    queue->run(Lane::compute, t, recorded.kernel(t), recorded.launch(t, &ignored));
  queue->finish();
  StepState state = test_state(*step);
  for (int round = 0; round < 4; ++round) {
    state.step += 1;
    state.update_count += 1;
    state.learning_rate *= 0.7;
    single.run_one_by_one(state);
    backend_->begin_step(state);
    queue->launch();
    queue->synchronize();
    EXPECT_EQ(recorded.persistent(), single.persistent()) << "round " << round;
  }
}

// Out on one lane and in on another, under waits, behind a kernel that makes what is copied.
TEST_F(QueueTest, CopiesOnLanesInOrder) {
  const StepPtr step = step_with_everything(*backend_);
  Job job(*backend_, step), undisturbed(*backend_, step);
  const TensorId y = step->operands_of(TaskId(0)).back().tensor;  // of the first convolution
  const Bytes bytes = step->storage(step->tensor(y).storage).bytes;
  std::byte* const host = backend_->allocate_host(bytes);
  constexpr std::size_t kOut = 1000, kSpoil = 1001, kIn = 1002;
  std::byte* const zeros = backend_->allocate_host(bytes);
  std::fill_n(zeros, bytes.size(), std::byte{0});
  const auto queue = backend_->make_queue(true);
  for (std::size_t t = 0; t < job.size(); ++t) {
    if (t == 1) {  // leaves, is overwritten, comes back before it is read
      queue->wait(Lane::out, 0);
      queue->copy(Lane::out, kOut, host, job.address(y), bytes);
      queue->wait(Lane::in, kOut);
      queue->copy(Lane::in, kSpoil, job.address(y), zeros, bytes);
      queue->copy(Lane::in, kIn, job.address(y), host, bytes);
      queue->wait(Lane::compute, kIn);
    }
    queue->run(Lane::compute, t, job.kernel(t), job.launch(t, nullptr));
  }
  queue->finish();
  const StepState state = test_state(*step);
  for (int round = 0; round < 3; ++round) {
    backend_->begin_step(state);
    queue->launch();
    queue->synchronize();
    undisturbed.run_one_by_one(state);
    EXPECT_EQ(job.persistent(), undisturbed.persistent()) << "round " << round;
    for (std::size_t t = 0; t < job.size(); ++t) {
      EXPECT_GE(queue->span(t).begin, 0);
      EXPECT_GE(queue->span(t).end, queue->span(t).begin);
    }
    EXPECT_GE(queue->span(kOut).begin, queue->span(0).end);
    EXPECT_GE(queue->span(kSpoil).begin, queue->span(kOut).end);
    EXPECT_GE(queue->span(1).begin, queue->span(kIn).end);
  }
  backend_->release_host(host, bytes);
  backend_->release_host(zeros, bytes);
}

TEST_F(QueueTest, RefusesWhatCannotBe) {
  const auto queue = backend_->make_queue(false);
  EXPECT_THROW(queue->wait(Lane::out, 5), Error);
  EXPECT_THROW(queue->launch(), Error);
}

TEST_F(QueueTest, AnAbandonedRecordingLeavesTheBackendUsable) {
  const StepPtr step = step_with_everything(*backend_);
  Job job(*backend_, step);
  const StepState state = test_state(*step);
  {
    const auto queue = backend_->make_queue(false);
    queue->run(Lane::compute, 0, job.kernel(0), job.launch(0, &state));
  }
  job.run_one_by_one(state);
  EXPECT_FALSE(job.persistent().empty());
}

// What leaves the device and comes back is the same, whatever runs meanwhile.
TEST_F(QueueTest, CopiesOutsideOfStepsWaitForKernels) {
  const Bytes bytes(1 << 22);
  std::byte *device = backend_->allocate(bytes), *host = backend_->allocate_host(bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(host) % 256, 0U);
  std::mt19937 generator(3);
  for (std::size_t i = 0; i < bytes.size(); ++i) host[i] = static_cast<std::byte>(generator());
  const std::vector<std::byte> before(host, host + bytes.size());
  backend_->copy(device, host, bytes);
  std::fill_n(host, bytes.size(), std::byte{0});
  backend_->copy(host, device, bytes);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), host));
  backend_->release(device, bytes);
  backend_->release_host(host, bytes);
}

}  // namespace
}  // namespace tide::test
