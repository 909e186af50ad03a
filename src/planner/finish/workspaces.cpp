// SuperNeurons' section 3.5: functional tensors come first; what they leave free at an op
// decides the algorithm.
#include <algorithm>
#include <numeric>

#include "cost/algorithms.h"
#include "memory/block_pool.h"
#include "planner/finish/finish.h"

namespace tide {

bool has_fastest_algorithms(const Step& step, const CostModel& cost, const Draft& draft) {
  return std::all_of(draft.ops.begin(), draft.ops.end(), [&](const Op& op) {
    return !op.is_run() ||
           cost.task_seconds(step, op.run().task, op.run().algorithm) <= fastest_seconds(step, cost, op.run().task);
  });
}

void take_algorithms_within(const Step& step, const CostModel& cost, Bytes limit, Draft& draft) {
  const std::vector<std::int64_t> alive = alive_on_device(step, draft, true);
  for (std::size_t i = 0; i < draft.ops.size(); ++i) {
    Op& op = draft.ops[i];
    if (!op.is_run()) continue;
    const auto& algorithms = step.algorithms_of(op.run().task);
    for (std::uint32_t a = 0; a < algorithms.size(); ++a)
      if (algorithms[a].workspace.aligned().count() <= limit.count() - alive[i] &&
          cost.task_seconds(step, op.run().task, a) < cost.task_seconds(step, op.run().task, op.run().algorithm))
        op.run().algorithm = a;
  }
}

void choose_workspaces(const Step& step, const CostModel& cost, Bytes memory, Draft& draft) {
  const bool choice = std::any_of(step.algorithm_sets.begin(), step.algorithm_sets.end(),
                                  [](const auto& set) { return set.size() > 1; });
  if (!choice) return;
  std::vector<std::uint32_t> begins(draft.stays.size()), ends;
  std::iota(begins.begin(), begins.end(), 0U);
  std::erase_if(begins, [&](std::uint32_t s) { return draft.stays[s].tier != Tier::device; });
  ends = begins;
  std::sort(begins.begin(), begins.end(),
            [&](auto a, auto b) { return draft.stays[a].hold_first < draft.stays[b].hold_first; });
  std::sort(ends.begin(), ends.end(),
            [&](auto a, auto b) { return draft.stays[a].hold_last < draft.stays[b].hold_last; });

  BlockPool pool(memory, Bytes(kAlignment));
  std::vector<BlockPool::NodeId> nodes(draft.stays.size());
  std::size_t next_begin = 0, next_end = 0;
  for (std::int32_t i = kEntry; i < static_cast<std::int32_t>(draft.ops.size()); ++i) {
    for (; next_begin < begins.size() && draft.stays[begins[next_begin]].hold_first <= i; ++next_begin) {
      const DraftStay& stay = draft.stays[begins[next_begin]];
      const Bytes bytes = step.storage(stay.storage).bytes;
      if (bytes.is_zero()) continue;
      const auto node = pool.allocate_at(stay.address, bytes);
      if (!node) throw Error("storage {} is placed over another at op {}", stay.storage.value(), i);
      nodes[begins[next_begin]] = node->id;
    }
    if (i >= 0 && draft.ops[static_cast<std::size_t>(i)].is_run()) {
      Op& op = draft.ops[static_cast<std::size_t>(i)];
      const auto& algorithms = step.algorithms_of(op.run().task);
      if (algorithms.size() > 1) {
        // The smallest hole that holds the fastest algorithm of all that fit somewhere.
        const Bytes largest = pool.largest_hole();
        std::uint32_t best = op.run().algorithm;
        for (std::uint32_t a = 0; a < algorithms.size(); ++a)
          if (algorithms[a].workspace.aligned() <= largest &&
              cost.task_seconds(step, op.run().task, a) < cost.task_seconds(step, op.run().task, best))
            best = a;
        if (best != op.run().algorithm) {
          op.run().algorithm = best;
          const std::int64_t wanted = algorithms[best].workspace.aligned().count();
          std::int64_t tightest = INT64_MAX;
          for (const auto& [address, bytes] : pool.holes())
            if (bytes >= wanted && bytes < tightest) {
              tightest = bytes;
              op.run().workspace = Bytes(address);
            }
        }
      }
    }
    for (; next_end < ends.size() && draft.stays[ends[next_end]].hold_last <= i; ++next_end)
      if (!step.storage(draft.stays[ends[next_end]].storage).bytes.is_zero()) pool.release(nodes[ends[next_end]]);
  }
}

}  // namespace tide
