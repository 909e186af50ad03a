// How much of the sums over ranks is hidden behind the backward pass: 1 - added / alone, where `alone` is the time that
// the sums of a step take by themselves and `added` how much longer the step is with them than without.
//
// Ranks are threads. Tasks compute nothing and sleep for as long as a modelled GPU takes, what sums send
// sleeps for as long as it takes over the given link; both many times slower than life, so that neither the sums
// themselves nor the time to wake up shows on a machine with few cores. What is measured is the executor's own lanes,
// on plans as `tide train` makes them.
//
//   reduce_overlap [--timeline]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include "base/size_text.h"
#include "base/stopwatch.h"
#include "cluster/forwarding.h"
#include "cluster/reduce.h"
#include "cluster/threads.h"
#include "cost/device_model.h"
#include "cost/devices.h"
#include "executor/executor.h"
#include "executor/host_collectives.h"
#include "plan/summary.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "sleeping_backend.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSteps = 5;               // of which the fastest counts: what disturbs them only adds
constexpr double kStepSeconds = 1.5;    // what a step without sums is slowed down to
constexpr double kStartSeconds = 3e-5;  // of one sum, before its first byte

std::chrono::duration<double> as_duration(double seconds) { return std::chrono::duration<double>(seconds); }

// Ranks behind a link, which is as quick both ways at once. Nothing goes before both are there.
class ThrottledRanks final : public ForwardingCommunicator {
 public:
  ThrottledRanks(Communicator& real, double bytes_per_second, double start_seconds)
      : ForwardingCommunicator(real), bytes_per_second_(bytes_per_second), start_seconds_(start_seconds) {}
  // Sums are made of these (quick_all_reduce).
  void exchange(int peer, std::span<const std::byte> send, std::span<std::byte> receive) override {
    real().exchange(peer, {}, {});
    const Clock::time_point begun = Clock::now();
    real().exchange(peer, send, receive);
    const auto sent = static_cast<double>(std::max(send.size(), receive.size()));
    std::this_thread::sleep_until(begun + as_duration(start_seconds_ + sent / bytes_per_second_));
  }

 private:
  double bytes_per_second_, start_seconds_;
};

// Steps of the same plan, without sums.
class NoSums final : public Collectives {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] Kernel prepare(const Step& /*step*/, TaskId /*task*/) override {
    return [](const Launch&) {};
  }
};

struct Case {
  const char* model;
  Shape sample;
  std::int64_t batch;
  int ranks;
  double link_bytes_per_second;
  Bytes bucket;
};

Device device_of(const Case& given) {
  Device device = find_device("v100").rates();
  device.reduce_bytes_per_second = given.link_bytes_per_second;
  return device;
}

PlanResult plan_of(const Case& given, const CostModel& cost) {
  StepOptions options;
  options.batch = given.batch;
  options.fuse = true;
  options.ranks.count = given.ranks;
  options.ranks.bucket = given.bucket;
  Step step = build_step(std::make_shared<const Network>(make_model(given.model, given.sample)), options);
  annotate_for(step, device_of(given));
  return make_plan(find_policy("liveness"), step, cost, {});
}

Timeline run_steps(const Plan& plan, Backend& backend, Collectives& collectives, Communicator& ranks) {
  Arena arena(backend, summarize(plan).peak[Tier::device]);
  const std::unique_ptr<Executor> executor =
      make_executor(plan, backend, arena, {.guard = false, .record = true, .collectives = &collectives});
  Timeline fastest;
  for (int step = 0; step < kSteps; ++step) {
    ranks.barrier();
    executor->run({.global_batch = executor->step().options.batch * ranks.size()});
    if (step == 0 || executor->timeline().seconds < fastest.seconds) fastest = executor->timeline();
  }
  return fastest;
}

double sum_alone(const Plan& plan, Communicator& ranks) {
  const Phase& phase = plan.phases.front();
  double fastest = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kSteps; ++step) {
    double all = 0;
    for (const Op& op : phase.ops) {
      if (op.lane != Lane::reduce) continue;
      const Operand& bucket = phase.step->operands_of(phase.step->task(op.run().task)).front();
      std::vector<float> values(bytes_of(*phase.step, bucket).size() / sizeof(float)), scratch(values.size());
      ranks.barrier();
      const Stopwatch summing;
      quick_all_reduce(ranks, values, scratch);
      all += summing.seconds();
    }
    fastest = std::min(fastest, all);
  }
  return fastest;
}

// What rank 0 sees.
struct Overlap {
  double without = 0, alone = 0;
  Timeline timeline;  // of a step with sums

  [[nodiscard]] double added() const { return timeline.seconds - without; }
  [[nodiscard]] double hidden() const { return 1 - added() / alone; }
};

// By the simulator.
Overlap predict(const Plan& plan, const Case& given) {
  Device device = device_of(given);
  Overlap overlap{.timeline = simulate(plan, DeviceModel(device))};
  const Phase& phase = plan.phases.front();
  for (const Op& op : phase.ops)
    if (op.lane == Lane::reduce) overlap.alone += collective_seconds(device, *phase.step, op.run().task);
  device.reduce_bytes_per_second = 1e18;
  overlap.without = simulate(plan, DeviceModel(device)).seconds;
  return overlap;
}

Overlap measure(const Plan& plan, const CostModel& cost, const Case& given, double slowdown) {
  std::vector<Overlap> found(static_cast<std::size_t>(given.ranks));
  on_thread_ranks(given.ranks, [&](Communicator& communicator) {
    SleepingBackend backend(cost, slowdown);
    ThrottledRanks ranks(communicator, given.link_bytes_per_second / slowdown, kStartSeconds * slowdown);
    const std::unique_ptr<Collectives> sums = make_host_collectives(ranks, backend);
    NoSums none;
    Overlap& own = found[static_cast<std::size_t>(communicator.rank())];
    own.without = run_steps(plan, backend, none, ranks).seconds;
    own.alone = sum_alone(plan, ranks);
    own.timeline = run_steps(plan, backend, *sums, ranks);
  });
  return found.front();
}

// A column for each part of the step: the digit is the tenths of it in which the lane is busy.
void print_timeline(const Phase& phase, const Timeline& timeline) {
  constexpr std::size_t kColumns = 84;
  const double width = timeline.seconds / kColumns;
  for (const Lane lane : {Lane::compute, Lane::reduce}) {
    std::vector<double> busy(kColumns);
    for (const Span& span : timeline.spans) {
      if (phase.ops[static_cast<std::size_t>(span.op)].lane != lane) continue;
      for (std::size_t column = 0; column < kColumns; ++column) {
        const double begin = static_cast<double>(column) * width;
        busy[column] += std::max(0.0, std::min(span.end, begin + width) - std::max(span.start, begin)) / width;
      }
    }
    std::string text;
    for (const double share : busy)
      text += share < 0.05 ? '.' : share > 0.95 ? '#' : static_cast<char>('0' + static_cast<int>(share * 10));
    fmt::print("    {:<8}{}\n", lane_name(lane), text);
  }
  for (const Span& span : timeline.spans) {
    const Op& op = phase.ops[static_cast<std::size_t>(span.op)];
    if (op.lane == Lane::reduce)
      fmt::print("    {:<16}{:>6.1f}% to {:>5.1f}% of the step\n", task_name(*phase.step, op.run().task),
                 100 * span.start / timeline.seconds, 100 * span.end / timeline.seconds);
  }
}

void run_case(const Case& given, bool prints_timeline) {
  const DeviceModel cost(device_of(given));
  const PlanResult result = plan_of(given, cost);
  const Plan& plan = *result.plan;
  const Phase& phase = plan.phases.front();
  double compute = 0;
  Bytes summed;
  int sums = 0;
  for (const Op& op : phase.ops) {
    if (op.lane == Lane::compute) compute += cost.task_seconds(*phase.step, op.run().task, op.run().algorithm);
    if (op.lane != Lane::reduce) continue;
    summed += bytes_of(*phase.step, phase.step->operands_of(phase.step->task(op.run().task)).front());
    ++sums;
  }
  const Overlap overlap = measure(plan, cost, given, kStepSeconds / compute);
  fmt::print(
      "{:<12} {:>5} {:>5} {:>7.2f} {:>8} {:>5} {:>9} {:>9.1f} {:>7.0f} {:>7.0f} {:>7.0f} {:>7.0f} {:>7.1f}% "
      "{:>8.1f}%\n",
      given.model, given.batch, given.ranks, given.link_bytes_per_second / 1e9, format_size(given.bucket), sums,
      format_size(summed), 1e3 * compute, 1e3 * overlap.without, 1e3 * overlap.timeline.seconds, 1e3 * overlap.alone,
      1e3 * overlap.added(), 100 * overlap.hidden(), 100 * predict(plan, given).hidden());
  if (prints_timeline) print_timeline(phase, overlap.timeline);
  std::fflush(stdout);
}

}  // namespace
}  // namespace tide

int main(int count, char** arguments) {
  using tide::Bytes;
  using tide::Case;
  using tide::Shape;
  const bool prints_timeline = count > 1 && std::strcmp(arguments[1], "--timeline") == 0;
  const Bytes kMiB(1 << 20);
  fmt::print("{:<12} {:>5} {:>5} {:>7} {:>8} {:>5} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7} {:>8} {:>9}\n", "network",
             "batch", "ranks", "GB/s", "bucket", "sums", "summed", "model ms", "without", "with", "alone", "added",
             "hidden", "predicted");
  try {
    const Shape image{1, 3, 224, 224};
    for (const Case& given : {
             Case{"resnet50", image, 32, 2, 3e9, kMiB * 25},
             Case{"resnet50", image, 32, 4, 3e9, kMiB * 25},
             Case{"resnet50", image, 32, 2, 3e9, kMiB * 100},
             Case{"resnet50", image, 32, 2, 3e9, kMiB * 4},
             Case{"resnet50", image, 32, 2, 1.5e9, kMiB * 25},
             Case{"resnet50", image, 32, 2, 12e9, kMiB * 25},
             Case{"vgg16", image, 32, 2, 12e9, kMiB * 25},
             Case{"densenet121", image, 32, 2, 3e9, kMiB * 25},
             Case{"inception-v4", {1, 3, 299, 299}, 32, 2, 3e9, kMiB * 25},
         })
      tide::run_case(given, prints_timeline);
  } catch (const std::exception& error) {
    fmt::print(stderr, "reduce_overlap: {}\n", error.what());
    return 1;
  }
}
