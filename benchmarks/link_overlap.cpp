// How well the simulator predicts steps with copies: the measured time of a step over the
// predicted one, with a profile taken in the same run, behind links of 1, 2 and 4 GB/s. Also
// how much of the time that copies take is hidden under tasks, and where an error comes from:
// `tasks` is the time of all tasks over the profile's, `lanes` the time of the step over the
// prediction from the tasks' true times. One compute thread; needs a quiet machine.
//
//   link_overlap [STEPS [POLICY...]]
#include <algorithm>
#include <cstdlib>

#include "base/size_text.h"
#include "executor/executor.h"
#include "executor/measure.h"
#include "plan/summary.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

struct Case {
  const char* model;
  Shape sample;
  std::int64_t batch;
};

// The share of all copies' time during which a task runs.
double hidden_share(const Phase& phase, const Timeline& timeline) {
  double all = 0;
  double hidden = 0;
  std::vector<Span> tasks;
  for (const Span& span : timeline.spans)
    if (phase.ops[static_cast<std::size_t>(span.op)].lane == Lane::compute) tasks.push_back(span);
  for (const Span& copy : timeline.spans) {
    if (phase.ops[static_cast<std::size_t>(copy.op)].lane == Lane::compute) continue;
    all += copy.end - copy.start;
    auto task = std::lower_bound(tasks.begin(), tasks.end(), copy.start,
                                 [](const Span& t, double time) { return t.end < time; });
    for (; task != tasks.end() && task->start < copy.end; ++task)
      hidden += std::min(task->end, copy.end) - std::max(task->start, copy.start);
  }
  return all > 0 ? hidden / all : 1;
}

double busy(const Phase& phase, const Timeline& timeline, Lane lane) {
  double sum = 0;
  for (const Span& span : timeline.spans)
    if (phase.ops[static_cast<std::size_t>(span.op)].lane == lane) sum += span.end - span.start;
  return sum;
}

// The times that tasks took in one recorded step, with copies as another model has them: tells
// a wrong profile from a wrong idea of how lanes work together.
class Observed final : public CostModel {
 public:
  Observed(const Phase& phase, const Timeline& timeline, const CostModel& copies)
      : seconds_(phase.step->tasks.size()), copies_(copies) {
    std::vector<int> runs(seconds_.size());
    for (const Span& span : timeline.spans) {
      const Op& op = phase.ops[static_cast<std::size_t>(span.op)];
      if (!op.is_run()) continue;
      double& mean = seconds_[op.run().task.index()];
      mean += (span.end - span.start - mean) / ++runs[op.run().task.index()];
    }
  }
  [[nodiscard]] std::string name() const override { return "observed"; }
  [[nodiscard]] double task_seconds(const Step& /*step*/, TaskId task, std::size_t /*algorithm*/) const override {
    return seconds_[task.index()];
  }
  [[nodiscard]] double copy_seconds(Bytes bytes, Tier from, Tier to) const override {
    return copies_.copy_seconds(bytes, from, to);
  }

 private:
  std::vector<double> seconds_;
  const CostModel& copies_;
};

struct Measured {
  double seconds = 0, hidden = 0, compute = 0;
  double with_observed = 0;  // predicted, had the profile been right
};

// The step in the middle of several.
Measured measure(const Plan& plan, const CostModel& cost, Backend& backend, double link, int steps) {
  Arena arena(backend, summarize(plan).peak[Tier::device]);
  const std::unique_ptr<Executor> made =
      make_executor(plan, backend, arena, {.guard = false, .record = true, .link_bytes_per_second = link});
  Executor& executor = *made;
  const Step& step = executor.step();
  for (const Storage& storage : step.storages) {
    if (!storage.persistent || !storage.entry.valid()) continue;
    executor.write(storage.entry,
                   std::vector<float>(static_cast<std::size_t>(step.tensor(storage.entry).shape.elements()), 0.01F));
  }
  std::fill(executor.input().begin(), executor.input().end(), 0.5F);
  std::fill(executor.labels().begin(), executor.labels().end(), 1);
  std::vector<Measured> results;
  for (int i = 0; i <= steps; ++i) {
    executor.run({.seed = 1,
                  .step = 0,
                  .learning_rate = 0,
                  .update_count = 1,
                  .first_sample = 0,
                  .global_batch = step.options.batch});
    const Timeline& timeline = executor.timeline();
    const Phase& phase = plan.phases.front();
    if (i > 0)
      results.push_back({timeline.seconds, hidden_share(phase, timeline), busy(phase, timeline, Lane::compute),
                         simulate(plan, Observed(phase, timeline, cost)).seconds});
  }
  const auto middle = results.begin() + static_cast<std::ptrdiff_t>(results.size() / 2);
  std::nth_element(results.begin(), middle, results.end(),
                   [](const Measured& a, const Measured& b) { return a.seconds < b.seconds; });
  return *middle;
}

void compare(std::string_view name, const Plan& plan, const CostModel& cost, Backend& backend, double link, int steps) {
  const Phase& phase = plan.phases.front();
  const Timeline predicted = simulate(plan, cost);
  const Measured measured = measure(plan, cost, backend, link, steps);
  fmt::print("{:<15} {:<13} {:>4} {:>9} {:>9.1f} {:>9.1f} {:>6.3f} {:>6.3f} {:>6.3f} {:>7.1f}% {:>8.1f}%\n",
             phase.step->model, name, link > 0 ? fmt::format("{:.0f}", link / 1e9) : "-",
             format_size(summarize(plan).offloaded_bytes), 1e3 * measured.seconds, 1e3 * predicted.seconds,
             measured.seconds / predicted.seconds, measured.compute / busy(phase, predicted, Lane::compute),
             measured.seconds / measured.with_observed, 100 * measured.hidden, 100 * hidden_share(phase, predicted));
  std::fflush(stdout);
}

void run_case(const Case& given, int steps, const std::vector<std::string>& names) {
  const std::unique_ptr<Backend> backend = make_backend("cpu", 1);
  StepOptions options;
  options.batch = given.batch;
  Step step = build_step(std::make_shared<const Network>(make_model(given.model, given.sample)), options);
  backend->annotate(step);
  const PlanResult liveness = make_plan(find_policy("liveness"), step, RooflineModel(generic_cpu()), {});
  Profile profile = measure_profile(*liveness.plan->phases.front().step, *backend);
  compare("liveness", *liveness.plan, ProfileModel({profile}), *backend, 0, steps);
  for (const double link : {1e9, 2e9, 4e9}) {
    measure_link(*backend, link, profile.out, profile.in);
    const ProfileModel cost({profile}, link);
    for (const std::string& policy : names) {
      // Half of what is above the least that will do: something has to move, but not all.
      PlannerOptions planner{.parameters = Parameters::device};
      planner.memory[Tier::device] = Bytes(1);
      const Bytes floor = make_plan(find_policy(policy), step, cost, planner).floor[Tier::device];
      planner.memory[Tier::device] = Bytes((floor.count() + std::max(floor, liveness.floor[Tier::device]).count()) / 2);
      const PlanResult result = make_plan(find_policy(policy), step, cost, planner);
      if (result.plan) compare(policy, *result.plan, cost, *backend, link, steps);
    }
  }
}

}  // namespace
}  // namespace tide

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::max(1, std::atoi(argv[1])) : 7;
  const std::vector<std::string> policies(argv + std::min(argc, 2), argv + argc);
  fmt::print("{:<15} {:<13} {:>4} {:>9} {:>9} {:>9} {:>6} {:>6} {:>6} {:>8} {:>9}\n", "network", "policy", "GB/s",
             "moved out", "measured", "predicted", "ratio", "tasks", "lanes", "hidden", "predicted");
  try {
    for (const tide::Case& given :
         {tide::Case{"resnet18@10", {1, 3, 64, 64}, 16}, tide::Case{"vgg16@10", {1, 3, 64, 64}, 8},
          tide::Case{"densenet121@10", {1, 3, 64, 64}, 8}, tide::Case{"alexnet@10", {1, 3, 131, 131}, 16}})
      tide::run_case(given, steps, policies.empty() ? std::vector<std::string>{"offload", "superneurons"} : policies);
  } catch (const std::exception& error) {
    fmt::print(stderr, "link_overlap: {}\n", error.what());
    return 1;
  }
}
