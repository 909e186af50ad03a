// A model's whole training step on the cuda backend as one recorded graph, without a budget:
//   gpu_step MODEL BATCH [--precision fp32|tf32|bf16] [--no-fuse]
// Every storage has memory of its own; workspaces share one area. Prints the median time of a
// step, images per second, and where the time goes by kind of task and layer.
#include <algorithm>
#include <cstdio>
#include <map>
#include <random>

#include "base/median.h"
#include "base/size_text.h"
#include "base/stopwatch.h"
#include "gpu_command.h"

namespace tide {
namespace {

// Random values of a plausible size: a diverging step would run on infinities.
void fill(Backend& backend, const Tensor& tensor, Bytes bytes, std::byte* to) {
  static const std::vector<float> random = [] {
    std::vector<float> made(std::size_t{4} << 20);
    std::mt19937 generator(1);
    std::normal_distribution<float> normal(0.0F, 0.05F);
    for (float& value : made) value = normal(generator);
    return made;
  }();
  const bool ones = tensor.role == Role::running_variance;
  std::vector<float> constant(
      ones || tensor.type != DataType::f32 || tensor.tensor_class == TensorClass::optimizer_state
          ? bytes.size() / sizeof(float)
          : 0,
      ones ? 1.0F : 0.0F);
  const std::vector<float>& from = constant.empty() ? random : constant;
  const std::size_t piece = from.size() * sizeof(float);
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    backend.copy(to + at, reinterpret_cast<const std::byte*>(from.data()),
                 Bytes(static_cast<std::int64_t>(std::min(piece, bytes.size() - at))));
}

class RecordedStep {
 public:
  RecordedStep(Backend& backend, const Step& step) : backend_(backend), step_(step) {
    Bytes workspace;
    for (const Storage& storage : step.storages) {
      storages_.push_back(backend.allocate(storage.bytes));
      total_ += storage.bytes;
    }
    for (const Tensor& tensor : step.tensors)
      if (tensor.tensor_class == TensorClass::input || step.storage(tensor.storage).persistent)
        fill(backend, tensor, step.storage(tensor.storage).bytes, storages_[tensor.storage.index()]);
    for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
      workspace = std::max(workspace, step.algorithms_of(TaskId(t))[0].workspace);
      kernels_.push_back(backend.prepare(step, TaskId(t), 0));
      operands_.emplace_back();
      for (const Operand& operand : step.operands_of(TaskId(t)))
        operands_.back().push_back(storages_[step.tensor(operand.tensor).storage.index()]);
    }
    workspace_ = backend.allocate(workspace);
    total_ += workspace;
  }

  [[nodiscard]] Bytes total() const { return total_; }

  std::unique_ptr<StepQueue> record(bool times) {
    auto queue = backend_.make_queue(times);
    for (std::size_t t = 0; t < kernels_.size(); ++t) queue->run(Lane::compute, t, kernels_[t], launch(t));
    queue->finish();
    return queue;
  }
  void run_one_by_one() {
    for (std::size_t t = 0; t < kernels_.size(); ++t) kernels_[t](launch(t));
    backend_.synchronize();
  }

 private:
  [[nodiscard]] Launch launch(std::size_t t) const { return {operands_[t].data(), workspace_, &state_}; }

  Backend& backend_;
  const Step& step_;
  StepState state_;
  Bytes total_;
  std::vector<std::byte*> storages_;
  std::byte* workspace_ = nullptr;
  std::vector<Kernel> kernels_;
  std::vector<std::vector<std::byte*>> operands_;
};

int run(const GpuCommand& command) {
  const auto backend = command.backend();
  Step step = command.step();
  Stopwatch watch;
  backend->annotate(step);
  const double annotated = watch.seconds();
  RecordedStep recorded(*backend, step);
  StepState state;
  state.learning_rate = 1e-4;
  backend->begin_step(state);
  recorded.run_one_by_one();
  watch.restart();
  recorded.run_one_by_one();
  const double eager = watch.seconds();
  watch.restart();
  const auto queue = recorded.record(false);
  const double recording = watch.seconds();
  std::vector<double> times;
  for (int round = 0; round < 12; ++round) {
    watch.restart();
    backend->begin_step(state);
    queue->launch();
    queue->synchronize();
    times.push_back(watch.seconds());
  }
  std::sort(times.begin(), times.end());
  const double usual = median(times);
  fmt::print("{}\n{} batch {}{}: {} tasks, annotated in {:.2f} s, recorded in {:.2f} s, {} without reuse\n",
             backend->description(), command.model, command.batch, command.fuse ? ", fused" : "", step.ordered_tasks,
             annotated, recording, format_size(recorded.total()));
  fmt::print("step {:.2f} ms ({:.2f} to {:.2f}), {:.0f} img/s; launched one by one {:.2f} ms\n", usual * 1e3,
             times.front() * 1e3, times.back() * 1e3, static_cast<double>(command.batch) / usual, eager * 1e3);

  const auto timed = recorded.record(true);
  timed->launch();
  timed->synchronize();
  std::map<std::string, std::pair<int, double>> kinds;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    const Task& task = step.tasks[t];
    const bool of_layer = is_of_layer(task.kind);
    auto& [count, seconds] =
        kinds[fmt::format("{} {}", of_layer ? kind_name(step.layer_kind(task)) : "", kind_name(task.kind))];
    count += 1;
    seconds += timed->span(t).end - timed->span(t).begin;
  }
  std::vector<std::pair<std::string, std::pair<int, double>>> order(kinds.begin(), kinds.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
  for (const auto& [name, entry] : order)
    fmt::print("  {:40} {:4} tasks {:8.3f} ms\n", name, entry.first, entry.second * 1e3);
  return 0;
}

}  // namespace
}  // namespace tide

int main(int count, char** arguments) {
  CLI::App app("A model's training step on the cuda backend, without a budget", "gpu_step");
  tide::GpuCommand command(app);
  return tide::gpu_main(app, count, arguments, [&] { return tide::run(command); });
}
