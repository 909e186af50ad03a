#include "executor/measure.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/median.h"
#include "base/stopwatch.h"
#include "executor/arena.h"
#include "executor/link.h"

namespace tide {
namespace {

// Memory for operands and workspace of one task in one piece, at most.
Bytes room_for(const Step& step, TaskId task, std::size_t algorithm) {
  Bytes sum = step.algorithms_of(task)[algorithm].workspace.aligned();
  for (const Operand& operand : step.operands_of(task))
    sum += step.storage(step.tensor(operand.tensor).storage).bytes.aligned();
  return sum;
}

struct Candidate {
  TaskId task;
  std::size_t algorithm = 0;
  Bytes room;
  TaskId before;  // in the step; invalid for the first
};

// One task of each signature.
std::map<std::string, Candidate> distinct_tasks(const Step& step) {
  std::map<std::string, Candidate> found;
  for (std::size_t t = 0; t < step.tasks.size(); ++t) {
    if (is_collective(step.tasks[t].kind)) continue;
    const TaskId before = t > 0 && t < step.ordered_tasks ? TaskId(t - 1) : TaskId();
    for (std::size_t a = 0; a < step.algorithms_of(TaskId(t)).size(); ++a)
      found.try_emplace(signature_of(step, TaskId(t), a),
                        Candidate{TaskId(t), a, room_for(step, TaskId(t), a), before});
  }
  return found;
}

// In a step, a task finds its operands outside the nearest caches, because the rest of the step
// has been there since, but for those that the task before it has used. So each run works in
// another part of an area about as large as a step's memory, after a look at those operands.
Bytes area_for(const Step& step, const std::map<std::string, Candidate>& tasks) {
  constexpr std::int64_t kEnough = std::int64_t{512} << 20;
  constexpr std::int64_t kReuse = 3;  // what plans with reuse take is about a third of all
  Bytes all, largest;
  for (const Storage& storage : step.storages) all += storage.bytes.aligned();
  for (const auto& [signature, candidate] : tasks) largest = std::max(largest, candidate.room);
  return std::max(largest, std::min(Bytes(all.count() / kReuse), Bytes(kEnough)).aligned());
}

class TaskTimer {
 public:
  TaskTimer(const Step& step, Backend& backend, const MeasureOptions& options, Bytes area)
      : step_(step), backend_(backend), options_(options), arena_(backend, area) {
    fill(arena_.at(Bytes()), area);
    state_.learning_rate = 1e-6;
    state_.global_batch = step.options.batch;
    backend.begin_step(state_);
  }

  double seconds(const Candidate& candidate) {
    const Kernel kernel = backend_.prepare(step_, candidate.task, candidate.algorithm);
    find_positions(candidate.task);
    if (!backend_.host_addressable()) return recorded_seconds(candidate, kernel);
    std::vector<double> times;
    const Stopwatch begin;
    for (int run = 0; run <= options_.runs; ++run) {
      std::byte* const workspace = place(candidate);
      look_at_recent(candidate);
      const Stopwatch start;
      kernel({operands_.data(), workspace, &state_});
      backend_.synchronize();
      if (run > 0) times.push_back(start.seconds());
      if (times.size() >= 3 && begin.seconds() > options_.seconds_per_task) break;
    }
    return median(std::move(times));
  }

 private:
  // On a device that works by itself: some runs one behind the other as one recorded step, as
  // the executor has them, so that the host's part is that of a step.
  double recorded_seconds(const Candidate& candidate, const Kernel& kernel) {
    constexpr int kRunsPerLaunch = 8;
    struct Run {
      std::vector<std::byte*> operands;
      std::byte* workspace;
    };
    std::vector<Run> runs;
    for (int run = 0; run < kRunsPerLaunch; ++run) {
      std::byte* const workspace = place(candidate);
      runs.push_back({operands_, workspace});
    }
    const std::unique_ptr<StepQueue> queue = backend_.make_queue(false);
    if (queue)
      for (std::size_t i = 0; i < runs.size(); ++i)
        queue->run(Lane::compute, i, kernel, {runs[i].operands.data(), runs[i].workspace, &state_});
    if (queue) queue->finish();
    std::vector<double> times;
    const Stopwatch begin;
    for (int round = 0; round <= options_.runs; ++round) {
      const Stopwatch start;
      if (queue)
        queue->launch();
      else
        for (const Run& run : runs) kernel({run.operands.data(), run.workspace, &state_});
      backend_.synchronize();
      if (round > 0) times.push_back(start.seconds() / kRunsPerLaunch);
      if (times.size() >= 3 && begin.seconds() > options_.seconds_per_task) break;
    }
    return median(std::move(times));
  }

  // A backward task goes where its indices point: they must be those of a forward task.
  void find_positions(TaskId task) {
    positions_.clear();
    for (const Operand& operand : step_.operands_of(task))
      if (operand.role == Role::indices && operand.access == Access::read) run_producer(operand.tensor);
  }

  void run_producer(TensorId indices) {
    for (std::size_t t = 0; t < step_.ordered_tasks; ++t) {
      const std::span<const Operand> operands = step_.operands_of(TaskId(t));
      const auto made = std::find_if(operands.begin(), operands.end(), [&](const Operand& operand) {
        return operand.tensor == indices && operand.access == Access::write;
      });
      if (made == operands.end()) continue;
      std::byte* const workspace = place({TaskId(t), 0, room_for(step_, TaskId(t), 0), TaskId()});
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (operands[i].access == Access::read) fill(operands_[i], bytes_of(operands[i]));
      backend_.prepare(step_, TaskId(t), 0)({operands_.data(), workspace, &state_});
      backend_.synchronize();
      positions_.resize(bytes_of(*made).size());
      backend_.copy(positions_.data(), operands_[static_cast<std::size_t>(made - operands.begin())], bytes_of(*made));
      return;
    }
  }

  [[nodiscard]] Bytes bytes_of(const Operand& operand) const { return tide::bytes_of(step_, operand); }

  // Ordinary numbers: no kernel is slow with them, as some are with denormal ones.
  void fill(std::byte* memory, Bytes bytes) {
    if (backend_.host_addressable()) {
      std::fill_n(reinterpret_cast<float*>(memory), bytes.size() / sizeof(float), 0.01F);
      return;
    }
    constexpr std::size_t kPiece = std::size_t{16} << 20;
    const std::vector<float> numbers(std::min(kPiece, bytes.size()) / sizeof(float), 0.01F);
    const std::size_t piece = numbers.size() * sizeof(float);
    for (std::size_t at = 0; piece > 0 && at < bytes.size(); at += piece)
      backend_.copy(memory + at, reinterpret_cast<const std::byte*>(numbers.data()),
                    Bytes(static_cast<std::int64_t>(std::min(piece, bytes.size() - at))));
  }

  // The operands' addresses for the next run, one per storage; returns the workspace's.
  std::byte* place(const Candidate& candidate) {
    if (next_ + candidate.room > arena_.size()) next_ = Bytes();
    operands_.clear();
    const std::span<const Operand> operands = step_.operands_of(candidate.task);
    for (const Operand& operand : operands) {
      const auto same = std::find_if(operands.begin(), operands.end(),
                                     [&](const Operand& o) { return storage(o) == storage(operand); });
      if (const auto first = static_cast<std::size_t>(same - operands.begin()); first < operands_.size()) {
        operands_.push_back(operands_[first] - step_.offset_of(*same).size() + step_.offset_of(operand).size());
        continue;
      }
      std::byte* const address = arena_.at(next_ + step_.offset_of(operand));
      if (operand.role == Role::labels) {
        const std::vector<std::byte> zeros(bytes_of(operand).size());
        backend_.copy(address, zeros.data(), bytes_of(operand));
      }
      if (operand.role == Role::indices && operand.access == Access::read)
        backend_.copy(address, positions_.data(), bytes_of(operand));
      operands_.push_back(address);
      next_ += step_.storage(storage(operand)).bytes.aligned();
    }
    std::byte* const workspace = arena_.at(next_);
    next_ += step_.algorithms_of(candidate.task)[candidate.algorithm].workspace.aligned();
    return workspace;
  }

  // Brings those operands near that the task before uses too.
  void look_at_recent(const Candidate& candidate) {
    if (!candidate.before.valid()) return;
    constexpr std::size_t kCacheLine = 64;
    const std::span<const Operand> operands = step_.operands_of(candidate.task);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::span<const Operand> others = step_.operands_of(candidate.before);
      if (std::none_of(others.begin(), others.end(),
                       [&](const Operand& o) { return storage(o) == storage(operands[i]); }))
        continue;
      for (std::size_t at = 0; at < bytes_of(operands[i]).size(); at += kCacheLine)
        static_cast<void>(*static_cast<volatile std::byte*>(operands_[i] + at));
    }
  }

  [[nodiscard]] StorageId storage(const Operand& operand) const { return step_.tensor(operand.tensor).storage; }

  const Step& step_;
  Backend& backend_;
  const MeasureOptions& options_;
  Arena arena_;
  Bytes next_;
  StepState state_;
  std::vector<std::byte*> operands_;
  std::vector<std::byte> positions_;  // indices for the task that is measured
};

constexpr std::int64_t kSmallCopy = 4096;
constexpr std::int64_t kLargeCopy = std::int64_t{16} << 20;
constexpr double kLinkSeconds = 0.3;

// Large copies until the time is over, then small ones.
LinkSpeed measure_direction(const Link& link, std::byte* to, const std::byte* from) {
  run_promptly();
  std::vector<double> large, small;
  const Stopwatch begin;
  const auto time = [&](std::int64_t bytes) {
    const Stopwatch start;
    link.copy(to, from, Bytes(bytes));
    return start.seconds();
  };
  while (large.size() < 5 || begin.seconds() < kLinkSeconds) large.push_back(time(kLargeCopy));
  for (int i = 0; i < 101; ++i) small.push_back(time(kSmallCopy));
  const double speed = static_cast<double>(kLargeCopy) / median(std::move(large));
  return {speed, std::max(0.0, median(std::move(small)) - static_cast<double>(kSmallCopy) / speed)};
}

}  // namespace

namespace {

// What a copy adds to a recorded step, which the host does not wait for one by one.
double recorded_latency(Backend& backend, const Arena& device, const Arena& host, bool out, double bytes_per_second) {
  constexpr std::size_t kCopies = 256;
  const std::unique_ptr<StepQueue> queue = backend.make_queue(false);
  if (!queue) return -1;
  const Lane lane = out ? Lane::out : Lane::in;
  std::byte *const there = device.at(Bytes()), *const here = host.at(Bytes());
  for (std::size_t i = 0; i < kCopies; ++i)
    queue->copy(lane, i, out ? here : there, out ? there : here, Bytes(kSmallCopy));
  queue->finish();
  std::vector<double> times;
  for (int run = 0; run < 9; ++run) {
    const Stopwatch start;
    queue->launch();
    queue->synchronize();
    times.push_back(start.seconds() / static_cast<double>(kCopies));
  }
  return std::max(0.0, median(std::move(times)) - static_cast<double>(kSmallCopy) / bytes_per_second);
}

}  // namespace

void measure_link(Backend& backend, double link_bytes_per_second, LinkSpeed& out, LinkSpeed& in) {
  const Link link(backend, link_bytes_per_second);
  const Arena device(backend, Bytes(2 * kLargeCopy)), host(backend, Bytes(2 * kLargeCopy), Tier::host);
  std::memset(host.at(Bytes()), 0, host.size().size());
  backend.copy(device.at(Bytes()), host.at(Bytes()), device.size());
  const Bytes second(kLargeCopy);
  std::thread back([&] { in = measure_direction(link, device.at(second), host.at(second)); });
  std::thread forth([&] { out = measure_direction(link, host.at(Bytes()), device.at(Bytes())); });
  back.join();
  forth.join();
  if (link_bytes_per_second > 0) return;
  for (LinkSpeed* const way : {&out, &in})
    if (const double latency = recorded_latency(backend, device, host, way == &out, way->bytes_per_second);
        latency >= 0)
      way->latency_seconds = latency;
}

Profile measure_profile(const Step& step, Backend& backend, const MeasureOptions& options) {
  Profile profile{machine_name(), backend.description(), {}, {}, {}};
  if (options.known) profile = *options.known;
  if (profile.out.bytes_per_second <= 0) measure_link(backend, options.link_bytes_per_second, profile.out, profile.in);
  std::map<std::string, Candidate> tasks = distinct_tasks(step);
  std::erase_if(tasks, [&](const auto& task) { return profile.task_seconds.contains(task.first); });
  if (tasks.empty()) return profile;
  TaskTimer timer(step, backend, options, area_for(step, tasks));
  std::size_t done = 0;
  for (const auto& [signature, candidate] : tasks) {
    if (options.progress) options.progress(done++, tasks.size());
    profile.task_seconds[signature] = timer.seconds(candidate);
  }
  return profile;
}

}  // namespace tide
