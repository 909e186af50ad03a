#include "planner/replay/mirror_search.h"

#include "planner/draft/in_place.h"
#include "planner/finish/finish.h"
#include "planner/search/keeper.h"

namespace tide {

MirrorSearch::MirrorSearch(Step step, const CostModel& model, const PlanningContext& context)
    : step_(context.in_place ? merge_replayable(std::move(step)) : std::move(step)),
      cost_(model, step_),
      context_(context),
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
  if (context_.memory[Tier::device] && bytes <= *context_.memory[Tier::device]) consider(draft);
  if (!smallest_.ops.empty() && bytes >= smallest_bytes_) return;
  smallest_ = std::move(draft);
  smallest_counts_ = counts;
  smallest_bytes_ = bytes;
}

bool MirrorSearch::offer_faster(const MirrorCounts& counts) {
  Draft draft = mirror(facts_, replayable_, counts);
  if (packed_bytes(step_, draft) > *context_.memory[Tier::device]) return false;
  consider(std::move(draft));
  return true;
}

void MirrorSearch::consider(Draft draft) {
  PlanResult result = finish_quickly(step_, std::move(draft), cost_, context_);
  if (!result.plan) return;
  settle(result, cost_);
  if (fastest_.plan && *result.seconds >= *fastest_.seconds) return;
  fastest_ = std::move(result);
}

PlanResult MirrorSearch::take() && {
  PlanResult result = finish_draft(step_, std::move(smallest_), cost_, context_);
  settle(result, cost_);
  if (!result.plan || !fastest_.plan || *result.seconds <= *fastest_.seconds) return result;
  fastest_.floor[Tier::device] = result.floor[Tier::device];
  fastest_.bottleneck_task = std::move(result.bottleneck_task);
  return std::move(fastest_);
}

}  // namespace tide
