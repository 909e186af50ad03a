// Which segments are run again in which way.
#include <algorithm>

#include "planner/replay/techniques.h"

namespace tide {
namespace {

std::int64_t replays(const Step& step, const Draft& draft) {
  return std::count_if(draft.ops.begin(), draft.ops.end(),
                       [&](const Op& op) { return op.is_run() && step.task(op.run().task).kind == TaskKind::replay; });
}

// By segment (named by its head): whether anything it brought back is on the device at an
// op where more than `limit` bytes of data are alive.
std::vector<bool> segments_above(const StepFacts& facts, const Draft& draft, const std::vector<TensorId>& heads,
                                 const std::vector<bool>& drops, std::int64_t limit) {
  const Step& step = facts.step();
  const std::vector<std::int64_t> live = live_data(step, draft);
  std::vector<std::int32_t> above(live.size() + 1, 0);  // ops over the limit before each op
  std::int32_t turn = static_cast<std::int32_t>(live.size());
  for (std::size_t i = live.size(); i-- > 0;)
    if (draft.ops[i].is_run() && step.task(draft.ops[i].run().task).kind != TaskKind::forward)
      turn = static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < live.size(); ++i)
    above[i + 1] = above[i] + (static_cast<std::int32_t>(i) >= turn && live[i] > limit ? 1 : 0);

  std::vector<TensorId> head_of(step.storages.size());
  for (std::size_t t = 0; t < drops.size(); ++t)
    if (drops[t]) head_of[step.tensors[t].storage.index()] = heads[t];
  std::vector<bool> result(step.tensors.size(), false);
  for (const DraftStay& stay : draft.stays) {
    const TensorId head = head_of[stay.storage.index()];
    if (stay.tier != Tier::device || !head.valid() || stay.first < turn) continue;
    if (above[static_cast<std::size_t>(stay.last) + 1] > above[static_cast<std::size_t>(stay.first)])
      result[head.index()] = true;
  }
  return result;
}

}  // namespace

void add_recomputation(const StepFacts& facts, Recompute recompute, Techniques& techniques) {
  if (recompute == Recompute::none) return;
  const Step& step = facts.step();
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const std::int32_t last = facts.last_use(TensorId(t));
    const bool data = step.tensors[t].tensor_class == TensorClass::activation;
    techniques.drops[t] = data && facts.droppable(TensorId(t)) && !techniques.leaves[t] && last < kNever;
  }
  if (recompute == Recompute::speed) return;
  const std::vector<TensorId> heads = segment_heads(facts, techniques.drops);
  techniques.memory_centric = techniques.drops;
  if (recompute == Recompute::memory) return;

  // The paper compares a segment with the largest layer; taken as the peak that the other
  // strategy reaches, this holds for any graph.
  const Techniques all_memory = techniques;
  const Draft reference = apply(facts, all_memory);
  const std::int64_t limit = backward_peak(step, reference);
  techniques.memory_centric.assign(step.tensors.size(), false);
  while (true) {
    const Draft draft = apply(facts, techniques);
    const std::vector<bool> above = segments_above(facts, draft, heads, techniques.drops, limit);
    bool changed = false;
    for (std::size_t t = 0; t < step.tensors.size(); ++t) {
      if (!techniques.drops[t] || techniques.memory_centric[t] || !above[heads[t].index()]) continue;
      techniques.memory_centric[t] = changed = true;
    }
    if (changed) continue;
    if (backward_peak(step, draft) > limit || replays(step, draft) > replays(step, reference)) techniques = all_memory;
    return;
  }
}

}  // namespace tide
