#include "planner/modnn_batch.h"

#include <algorithm>

#include "planner/finish.h"
#include "planner/in_place.h"
#include "planner/layout.h"
#include "planner/policies.h"
#include "planner/rounds.h"

namespace tide {
namespace {

Step prepared(Step step, const PlannerOptions& options) {
  return options.in_place ? merge_in_place(std::move(step)) : step;
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
  std::vector<StorageId> seen;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    Bytes bytes = step.algorithms_of(TaskId(t))[fastest_algorithm(step, cost, TaskId(t))].workspace.aligned();
    seen.clear();
    for (const Operand& operand : step.operands_of(TaskId(t))) {
      const StorageId storage = step.tensor(operand.tensor).storage;
      if (step.storage(storage).persistent || std::find(seen.begin(), seen.end(), storage) != seen.end()) continue;
      seen.push_back(storage);
      bytes += step.storage(storage).bytes.aligned();
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

Step cut_part(const Step& step, std::int64_t samples, const PlannerOptions& options) {
  if (samples == step.options.batch) return prepared(step, options);
  return prepared(options.cut(samples, cuts_within(step, options) ? Part::whole : Part::later_round), options);
}

Floor modnn_floor(const Step& step, const CostModel& cost, const PlannerOptions& options) {
  Floor floor = smallest_floor(cut_part(step, 1, options));
  if (cuts_within(step, options)) return floor;
  const PlanResult update = plan_liveness(options.cut(step.options.batch, Part::update), cost, {});
  if (update.floor > floor.bytes) floor = {update.floor, update.bottleneck_task};
  return floor;
}

std::int64_t modnn_sub_batch(const Step& step, const CostModel& cost, const PlannerOptions& options) {
  const std::int64_t batch = step.options.batch;
  const Bytes memory = *options.memory;
  const auto profile = [&](std::int64_t samples) {
    const Step part = cut_part(step, samples, options);
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
