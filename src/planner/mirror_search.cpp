#include "planner/mirror_search.h"

#include "plan/timeline.h"
#include "planner/finish.h"
#include "planner/in_place.h"

namespace tide {

MirrorSearch::MirrorSearch(Step step, const CostModel& model, const PlannerOptions& options)
    : step_(options.in_place ? merge_replayable(std::move(step)) : std::move(step)),
      cost_(model, step_),
      options_(options),
      facts_(step_, {}),
      replayable_(replayable_tasks(facts_)) {}

MirrorCounts MirrorSearch::counts(std::int32_t count) const {
  MirrorCounts result(step_.ordered_tasks, 0);
  for (std::size_t t = 0; t < result.size(); ++t)
    if (replayable_[t]) result[t] = count;
  return result;
}

void MirrorSearch::offer(const MirrorCounts& counts) {
  Draft draft = mirror(facts_, replayable_, counts);
  const Bytes bytes = packed_bytes(step_, draft);
  if (options_.memory && bytes <= *options_.memory) consider(draft);
  if (!smallest_.ops.empty() && bytes >= smallest_bytes_) return;
  smallest_ = std::move(draft);
  smallest_counts_ = counts;
  smallest_bytes_ = bytes;
}

bool MirrorSearch::offer_faster(const MirrorCounts& counts) {
  Draft draft = mirror(facts_, replayable_, counts);
  if (packed_bytes(step_, draft) > *options_.memory) return false;
  consider(std::move(draft));
  return true;
}

void MirrorSearch::consider(Draft draft) {
  PlanResult result = finish_quickly(step_, std::move(draft), cost_, options_);
  if (!result.plan) return;
  const double seconds = simulate(*result.plan, cost_).seconds;
  if (fastest_.plan && seconds >= fastest_seconds_) return;
  fastest_ = std::move(result);
  fastest_seconds_ = seconds;
}

PlanResult MirrorSearch::take() && {
  PlanResult result = finish_draft(step_, std::move(smallest_), cost_, options_);
  if (!result.plan || !fastest_.plan || simulate(*result.plan, cost_).seconds <= fastest_seconds_) return result;
  fastest_.floor = result.floor;
  fastest_.bottleneck_task = std::move(result.bottleneck_task);
  return std::move(fastest_);
}

}  // namespace tide
