#include "planner/modnn/batch.h"

#include <algorithm>

#include "cost/algorithms.h"
#include "planner/draft/in_place.h"
#include "planner/policies/liveness.h"
#include "planner/search/rounds.h"

namespace tide {
namespace {

Step prepared(Step step, const PlanningContext& context) {
  return context.in_place ? merge_in_place(std::move(step)) : step;
}

// A sub-batch size and what it takes.
struct Tried {
  std::int64_t samples = 0;
  Bytes kept, task;  // S_W, max M_min
  [[nodiscard]] bool fits(Bytes memory) const { return kept + task <= memory; }
};

}  // namespace

Bytes largest_fast_task(const Step& step, const CostModel& cost) {
  Bytes largest;
  TaskBytes task_bytes(step);
  for (std::size_t t = 0; t < step.ordered_tasks; ++t)
    largest = std::max(largest, task_bytes(TaskId(t), fastest_algorithm(step, cost, TaskId(t))));
  return largest;
}

Step cut_part(const Step& step, std::int64_t samples, const PlanningContext& context) {
  if (samples == step.options.batch) return prepared(step, context);
  return prepared(context.cut(samples, cuts_within(step, context) ? Part::whole : Part::later_round), context);
}

Floor modnn_floor(const Step& step, const CostModel& cost, const PlanningContext& context) {
  Floor floor = smallest_floor(cut_part(step, 1, context));
  if (cuts_within(step, context)) return floor;
  const PlanResult update = plan_liveness(context.cut(step.options.batch, Part::update), cost, {});
  if (update.floor[Tier::device] > floor.bytes) floor = {update.floor[Tier::device], update.bottleneck_task};
  return floor;
}

std::int64_t modnn_sub_batch(const Step& step, const CostModel& cost, const PlanningContext& context) {
  const std::int64_t batch = step.options.batch;
  const Bytes memory = *context.memory[Tier::device];
  const auto profile = [&](std::int64_t samples) {
    const Step part = cut_part(step, samples, context);
    const Bytes kept = persistent_bytes(part);
    // All of the batch that a step begins with has to fit as well.
    return Tried{samples, kept, std::max(largest_fast_task(part, cost), smallest_floor(part).bytes - kept)};
  };
  // From above every b that does not fit gives a smaller one.
  Tried tried = profile(batch);
  while (!tried.fits(memory) && tried.samples > 1) {
    const std::int64_t room = std::max<std::int64_t>(memory.count() - tried.kept.count(), 0);
    const double share = static_cast<double>(room) / static_cast<double>(tried.task.count());
    const auto next = static_cast<std::int64_t>(static_cast<double>(tried.samples) * share);
    tried = profile(std::clamp<std::int64_t>(next, 1, tried.samples - 1));
  }
  // Other algorithms may be the fastest at another b: there may be a little room left.
  while (tried.fits(memory) && tried.samples + 1 < batch) {
    const Tried more = profile(tried.samples + 1);
    if (!more.fits(memory)) break;
    tried = more;
  }
  return tried.samples;
}

std::int64_t evened(std::int64_t batch, std::int64_t sub_batch) {
  const std::int64_t rounds = (batch + sub_batch - 1) / sub_batch;
  return (batch + rounds - 1) / rounds;
}

}  // namespace tide
