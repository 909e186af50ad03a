// The sublinear paper's section 3: in-place results, and memory blocks recycled in
// topological order. A block that becomes free is given to a later tensor, whatever its
// size; a block ends up as large as its largest tenant, and the step's memory is the sum
// of the blocks. O(n log n).
#include <algorithm>
#include <map>

#include "planner/draft/in_place.h"
#include "planner/finish/layout.h"
#include "planner/finish/lifetimes.h"
#include "planner/policy.h"

namespace tide {
namespace {

class Blocks {
 public:
  // The free block that fits best: the smallest that is large enough, else the largest
  // (which then grows), else a new one.
  std::size_t take(Bytes bytes) {
    auto it = free_.lower_bound(bytes);
    if (it == free_.end() && !free_.empty()) it = std::prev(it);
    if (it == free_.end()) {
      sizes_.push_back(bytes);
      return sizes_.size() - 1;
    }
    const std::size_t block = it->second;
    free_.erase(it);
    sizes_[block] = std::max(sizes_[block], bytes);
    return block;
  }
  void give_back(std::size_t block) { free_.emplace(sizes_[block], block); }
  [[nodiscard]] const std::vector<Bytes>& sizes() const { return sizes_; }

 private:
  std::vector<Bytes> sizes_;
  std::multimap<Bytes, std::size_t> free_;
};

PlanResult plan_sharing(Step step, const CostModel& /*cost*/, const PlanningContext& context) {
  if (context.in_place) step = merge_in_place(std::move(step));
  std::vector<Op> ops = runs_in_order(step);
  const std::vector<Interval> lives = lifetimes(step);

  // Storages by the op where they begin and end.
  std::vector<std::vector<std::size_t>> begins(ops.size() + 1), ends(ops.size() + 1);
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    if (step.storages[s].persistent || lives[s].last < lives[s].first) continue;
    begins[static_cast<std::size_t>(std::int64_t{lives[s].first} + 1)].push_back(s);
    ends[static_cast<std::size_t>(std::int64_t{lives[s].last} + 1)].push_back(s);
  }
  Blocks blocks;
  std::vector<std::size_t> block_of(step.storages.size(), 0);
  for (std::size_t position = 0; position <= ops.size(); ++position) {
    for (const std::size_t s : begins[position]) block_of[s] = blocks.take(step.storages[s].bytes.aligned());
    for (const std::size_t s : ends[position]) blocks.give_back(block_of[s]);
  }

  Layout layout;
  Bytes address;
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    if (!step.storages[s].persistent) continue;
    layout.residencies.push_back({StorageId(s), Tier::device, lives[s].first, lives[s].last, address});
    address += step.storages[s].bytes.aligned();
  }
  std::vector<Bytes> block_addresses;
  for (const Bytes size : blocks.sizes()) {
    block_addresses.push_back(address);
    address += size;
  }
  for (std::size_t s = 0; s < step.storages.size(); ++s)
    if (!step.storages[s].persistent && lives[s].last >= lives[s].first)
      layout.residencies.push_back(
          {StorageId(s), Tier::device, lives[s].first, lives[s].last, block_addresses[block_of[s]]});
  add_workspace(step, ops, address, layout);
  return finish_layout(std::move(step), std::move(ops), std::move(layout), context);
}

}  // namespace

Policy sharing_policy() {
  return {.name = "sharing",
          .description = "inplace, and blocks are recycled among tensors (sublinear paper, section 3)",
          .plan = plan_sharing,
          .rank = 3,
          .moves = false};
}

}  // namespace tide
