// Times of the cpu backend's kernels: for each kind of task in ResNet50's training step at
// batch 8, all tasks of that kind one after the other, each on the operands it has in a step.
#include <benchmark/benchmark.h>

#include <cstring>
#include <map>

#include "backend/backend.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

struct PreparedTask {
  Kernel kernel;
  std::vector<std::byte*> operands;
  Bytes bytes;  // of all operands
};

// A step with memory for every storage, and its tasks by kind.
class PreparedStep {
 public:
  PreparedStep(const std::string& model, std::int64_t batch) : backend_(make_backend("cpu")) {
    StepOptions options;
    options.batch = batch;
    step_ = build_step(std::make_shared<const Network>(make_model(model)), options);
    backend_->annotate(step_);
    for (const Storage& storage : step_.storages) memory_.push_back(filled(storage.bytes));
    Bytes workspace;
    for (std::uint32_t t = 0; t < step_.ordered_tasks; ++t)
      workspace = std::max(workspace, step_.algorithms_of(TaskId(t))[0].workspace);
    workspace_ = filled(workspace);
    for (std::uint32_t t = 0; t < step_.ordered_tasks; ++t) prepare(TaskId(t));
  }

  [[nodiscard]] const std::map<std::string, std::vector<PreparedTask>>& by_kind() const { return by_kind_; }

  void run(const PreparedTask& task) const { task.kernel({task.operands.data(), workspace_, &state_}); }

 private:
  std::byte* filled(Bytes bytes) {
    std::byte* memory = backend_->allocate(bytes);
    std::memset(memory, 0, bytes.size());
    return memory;
  }

  void prepare(TaskId id) {
    const Task& task = step_.task(id);
    PreparedTask prepared{backend_->prepare(step_, id, 0), {}, {}};
    for (const Operand& operand : step_.operands_of(id)) {
      const StorageId storage = step_.tensor(operand.tensor).storage;
      prepared.operands.push_back(memory_[storage.index()]);
      prepared.bytes += step_.storage(storage).bytes;
    }
    const bool of_layer = task.kind != TaskKind::update && task.kind != TaskKind::sum_gradients;
    by_kind_[fmt::format("{}{}{}", of_layer ? kind_name(step_.layer_kind(task)) : "", of_layer ? " " : "",
                         kind_name(task.kind))]
        .push_back(std::move(prepared));
  }

  std::unique_ptr<Backend> backend_;
  Step step_;
  StepState state_;
  std::vector<std::byte*> memory_;  // by storage; kept until the process ends
  std::byte* workspace_ = nullptr;
  std::map<std::string, std::vector<PreparedTask>> by_kind_;
};

void time_tasks(benchmark::State& state, const PreparedStep& step, const std::vector<PreparedTask>& tasks) {
  Bytes bytes;
  for (const PreparedTask& task : tasks) bytes += task.bytes;
  for ([[maybe_unused]] auto _ : state)
    for (const PreparedTask& task : tasks) step.run(task);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes.count());
}

}  // namespace
}  // namespace tide

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const tide::PreparedStep step("resnet50", 8);
  for (const auto& [name, tasks] : step.by_kind())
    benchmark::RegisterBenchmark(
        name.c_str(), [&step, &tasks = tasks](benchmark::State& state) { tide::time_tasks(state, step, tasks); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
}
