// Every distinct task of a model's training step on the cuda backend, by every algorithm:
//   gpu_tasks MODEL BATCH [--precision fp32|tf32|bf16] [--no-fuse] [--all-algorithms] [--only TEXT]
// Prints a table, the slowest first, and the sum over the step of the first and of the fastest
// algorithms. Data is random: zeros run faster than any real data.
#include <algorithm>
#include <cstdio>
#include <map>
#include <random>

#include "base/median.h"
#include "base/stopwatch.h"
#include "gpu_command.h"

namespace tide {
namespace {

// What two tasks must have in common to take the same time.
std::string signature(const Step& step, TaskId id) {
  const Task& task = step.task(id);
  std::string text = fmt::format("{} {} {}", kind_name(task.kind), kind_name(step.layer_kind(task)), task.algorithms);
  for (const Operand& operand : step.operands_of(id)) {
    const Shape& s = step.tensor(operand.tensor).shape;
    text += fmt::format(" {}:{}x{}x{}x{}", role_name(operand.role), s.batch(), s.channels(), s.height(), s.width());
  }
  return text;
}

class Memory {
 public:
  explicit Memory(Backend& backend) : backend_(backend), random_(std::size_t{16} << 20) {
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    for (float& value : random_) value = normal(generator);
  }
  // Memory with random floats, or small numbers where they are labels.
  std::byte* make(Bytes bytes, bool labels) {
    std::byte* memory = backend_.allocate(bytes);
    made_.push_back(memory);
    std::vector<std::int32_t> small;
    if (labels) small.resize(bytes.size() / 4, 1);
    const auto* from =
        labels ? reinterpret_cast<const std::byte*>(small.data()) : reinterpret_cast<const std::byte*>(random_.data());
    const std::size_t piece = labels ? bytes.size() : random_.size() * sizeof(float);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      backend_.copy(memory + at, from, Bytes(static_cast<std::int64_t>(std::min(piece, bytes.size() - at))));
    return memory;
  }
  void release() {
    for (std::byte* memory : made_) backend_.release(memory, {});
    made_.clear();
  }

 private:
  Backend& backend_;
  std::vector<float> random_;
  std::vector<std::byte*> made_;
};

struct Row {
  std::string name;
  int count = 0;
  double bytes = 0;             // of the operands
  std::vector<double> seconds;  // by algorithm
  std::vector<Algorithm> algorithms;
};

double median_time(Backend& backend, const Kernel& kernel, const Launch& launch) {
  kernel(launch);
  backend.synchronize();
  std::vector<double> times;
  for (int round = 0; round < 5; ++round) {
    constexpr int kRuns = 4;
    const Stopwatch watch;
    for (int i = 0; i < kRuns; ++i) kernel(launch);
    backend.synchronize();
    times.push_back(watch.seconds() / kRuns);
    if (times.back() > 0.2) break;
  }
  return median(std::move(times));
}

int run(const GpuCommand& command, bool all, const std::string& only) {
  const auto backend = command.backend();
  Step step = command.step();
  const Stopwatch watch;
  backend->annotate(step);
  fmt::print("{}\n{} batch {}: annotated {} tasks in {:.2f} s\n", backend->description(), command.model, command.batch,
             step.tasks.size(), watch.seconds());
  Memory memory(*backend);
  std::map<std::string, Row> rows;
  const StepState state;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    const TaskId id(t);
    if (task_name(step, id).find(only) == std::string::npos) continue;
    Row& row = rows[signature(step, id)];
    if (row.count++ > 0) continue;
    row.name = task_name(step, id);
    row.algorithms = step.algorithms_of(id);
    std::vector<std::byte*> operands;
    std::map<StorageId, std::byte*> storages;
    for (const Operand& operand : step.operands_of(id)) {
      const Tensor& tensor = step.tensor(operand.tensor);
      std::byte*& address = storages[tensor.storage];
      const Bytes bytes = step.storage(tensor.storage).bytes;
      if (address == nullptr) address = memory.make(bytes, operand.role == Role::labels);
      row.bytes += static_cast<double>(bytes.count());
      operands.push_back(address);
    }
    for (std::size_t a = 0; a < row.algorithms.size() && (all || a == 0); ++a) {
      std::byte* workspace = memory.make(row.algorithms[a].workspace, false);
      row.seconds.push_back(median_time(*backend, backend->prepare(step, id, a), {operands.data(), workspace, &state}));
    }
    memory.release();
  }
  std::vector<const Row*> order;
  for (const auto& [key, row] : rows) order.push_back(&row);
  std::sort(order.begin(), order.end(),
            [](const Row* a, const Row* b) { return a->seconds[0] * a->count > b->seconds[0] * b->count; });
  double first = 0, fastest = 0;
  for (const Row* row : order) {
    const auto best = std::min_element(row->seconds.begin(), row->seconds.end());
    first += row->count * row->seconds[0];
    fastest += row->count * *best;
    std::string others;
    for (std::size_t a = 0; a < row->seconds.size(); ++a)
      others += fmt::format(" {}={:.3f}({}K)", row->algorithms[a].name, row->seconds[a] * 1e3,
                            row->algorithms[a].workspace.count() / 1024);
    fmt::print("{:3} x {:36} {:8.3f} ms {:6.0f} GB/s{}\n", row->count, row->name, row->seconds[0] * 1e3,
               row->bytes / row->seconds[0] * 1e-9, others);
  }
  fmt::print("sum of tasks: {:.2f} ms by the first algorithms ({:.0f}/s), {:.2f} ms by the fastest ({:.0f}/s)\n",
             first * 1e3, static_cast<double>(command.batch) / first, fastest * 1e3,
             static_cast<double>(command.batch) / fastest);
  return 0;
}

}  // namespace
}  // namespace tide

int main(int count, char** arguments) {
  CLI::App app("Every distinct task of a model's training step on the cuda backend", "gpu_tasks");
  tide::GpuCommand command(app);
  bool all = false;
  std::string only;
  app.add_flag("--all-algorithms", all, "Not only the first one");
  app.add_option("--only", only, "Only tasks whose names have this text");
  return tide::gpu_main(app, count, arguments, [&] { return tide::run(command, all, only); });
}
