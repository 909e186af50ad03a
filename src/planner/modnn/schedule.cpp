#include "planner/modnn/schedule.h"

#include <algorithm>
#include <limits>

#include "cost/algorithms.h"
#include "planner/finish/floor.h"

namespace tide {
namespace {

// Where addresses are found later, they are taken from so much more that none is ever in the way.
constexpr std::int64_t kPlenty = 8;

}  // namespace

ModnnSchedule::ModnnSchedule(const StepFacts& facts, const CostModel& cost, Bytes memory, bool one_lane,
                             const ModnnGuess& guess)
    : facts_(facts),
      step_(facts.step()),
      cost_(cost),
      one_lane_(one_lane),
      guess_(guess),
      bottom_(persistent_bytes(step_)),
      capacity_((memory - bottom_).count() / kAlignment * kAlignment),
      record_(step_),
      memory_(capacity_ * (guess.packed_later ? kPlenty : 1), step_.storages.size() + 1),
      workspace_(step_.storages.size()),
      clock_(facts, cost),
      next_(step_.storages.size(), kNever),
      pinned_(step_.storages.size() + 1, -1),
      used_(step_.storages.size(), false),
      met_(step_.storages.size(), 0) {
  for (const Storage& storage : step_.storages)
    seconds_.push_back(cost.copy_seconds(storage.bytes, Tier::host, Tier::device));
  // The inputs are where the recorder put them: behind what persists, in table order.
  for (std::size_t s = 0; s < step_.storages.size(); ++s) {
    const StorageId id(s);
    if (fixed(id) || !step_.storages[s].entry.valid()) continue;
    memory_.take(id, record_.address(id) - bottom_, size(id));
    next_[s] = facts_.next_use(step_.storages[s].entry, -1);
    // Nobody will ever read some inputs (labels of a network without a loss).
    if (next_[s] == kNever) release(id);
  }
}

Draft ModnnSchedule::run() && {
  for (std::int32_t position = 0; position < facts_.tasks(); ++position) execute(position);
  return std::move(record_).finish();
}

void ModnnSchedule::execute(std::int32_t position) {
  position_ = position;
  const TaskId task(static_cast<std::size_t>(position));
  operands_.clear();
  for (const Operand& operand : step_.operands_of(task)) {
    const StorageId id = storage(operand.tensor);
    if (fixed(id) || in_use(id)) continue;
    operands_.push_back(id);
    pinned_[id.index()] = position;
  }
  pinned_[workspace_.index()] = position;
  bring_together(task);
  double start = now();
  for (const StorageId id : operands_) start = std::max(start, clock_.device_ready[id.index()]);
  const Choice choice = choose_algorithm(task, start);
  prefetch(choice.end);
  record_.run(task, choice.algorithm, memory_.has(workspace_) ? bottom_ + memory_.address(workspace_) : Bytes());
  clock_.free[Lane::compute] = choice.end;
  settle(task);
}

void ModnnSchedule::bring_together(TaskId task) {
  if (!place_operands(task, Leaving::judiciously) && !place_operands(task, Leaving::anything)) {
    // Defragmentation.
    std::vector<StorageId> blocks;
    for (const MemoryList::Segment& segment : memory_.segments())
      if (segment.block.valid()) blocks.push_back(segment.block);
    for (const StorageId id : blocks) evict(id);
    constexpr double kEver = std::numeric_limits<double>::infinity();  // side by side, whatever is ready first
    for (const StorageId id : operands_) {
      const auto place = memory_.find_free(size(id), MemoryList::End::low, kEver);
      if (!place) throw Error("{} does not fit into its own floor", task_name(step_, task));
      occupy(id, place->address, place->ready);
    }
  }
  load(task);
}

// False where no scheme makes room; what has a place by then keeps it.
bool ModnnSchedule::place_operands(TaskId task, Leaving leaving) {
  for (const StorageId id : operands_)
    if (!memory_.has(id) && !allocate(id, leaving, position_, now())) return false;
  // The smallest workspace is part of the room.
  const Bytes least = step_.algorithms_of(task)[smallest_algorithm(step_, task)].workspace.aligned();
  if (least.is_zero() || find_place(least, MemoryList::End::high, now(), MemoryList::Fit::first)) return true;
  const std::optional<Scheme> scheme = find_scheme(least, leaving, position_, now());
  if (!scheme) return false;
  for (const StorageId id : scheme->blocks) evict(id);
  return true;
}

void ModnnSchedule::load(TaskId task) {
  for (const Operand& operand : step_.operands_of(task))
    if (operand.access != Access::write && !record_.holds(operand.tensor, Tier::device))
      copy_in(storage(operand.tensor));
}

// Equation 5: the largest gain is the least sum of what is lost.
ModnnSchedule::Choice ModnnSchedule::choose_algorithm(TaskId task, double start) {
  const auto& algorithms = step_.algorithms_of(task);
  Choice best;
  double least = std::numeric_limits<double>::infinity();
  Bytes address;
  std::vector<StorageId> leaving;
  for (std::uint32_t a = 0; a < algorithms.size(); ++a) {
    const Bytes bytes = algorithms[a].workspace.aligned();
    const double seconds = compute_seconds(step_, cost_, task, a);
    if (start + seconds >= least) continue;
    double begin = start, lost = 0;
    Bytes at;
    std::vector<StorageId> blocks;
    if (!bytes.is_zero()) {
      if (const auto place = find_place(bytes, MemoryList::End::high, start, MemoryList::Fit::first)) {
        at = place->address;
        begin = std::max(begin, place->ready);
      } else if (auto scheme = find_scheme(bytes, Leaving::judiciously, position_, start)) {
        at = scheme->address;
        begin = std::max(begin, scheme->ready);
        lost = scheme->delay - std::max(0.0, scheme->ready - start);
        blocks = std::move(scheme->blocks);
      } else {
        continue;
      }
    }
    const double end = begin + seconds;
    lost += prefetch_delay(bytes, begin, end);
    if (end + lost >= least) continue;
    least = end + lost;
    best = {a, begin, end};
    address = at;
    leaving = std::move(blocks);
  }
  if (least == std::numeric_limits<double>::infinity()) throw Error("no workspace for {}", task_name(step_, task));
  for (const StorageId id : leaving) evict(id);
  const Bytes bytes = algorithms[best.algorithm].workspace.aligned();
  if (!bytes.is_zero()) memory_.take(workspace_, address, bytes);
  return best;
}

// How much later the nearest task whose data are away can start if they do not fit beside a workspace
// and have to wait for its end.
double ModnnSchedule::prefetch_delay(Bytes workspace, double start, double end) const {
  if (away_.empty() || workspace.is_zero()) return 0;
  const std::int32_t target = away_.begin()->first;
  Bytes bytes;
  double seconds = 0;
  for (auto it = away_.begin(); it != away_.end() && it->first == target; ++it) {
    bytes += size(it->second);
    seconds += copy_seconds(it->second);
  }
  if (bytes.count() > room() || (workspace + bytes).count() <= room()) return 0;
  const double expected = end + until(target) - until(position_ + 1);
  const auto late = [&](double from) { return std::max(0.0, std::max(from, free(Lane::in)) + seconds - expected); };
  return late(end) - late(start);
}

void ModnnSchedule::settle(TaskId task) {
  if (memory_.has(workspace_)) memory_.release(workspace_, now(), now());
  const auto operands = step_.operands_of(task);
  for (const Operand& operand : operands) {
    const StorageId id = storage(operand.tensor);
    if (fixed(id)) continue;
    if (operand.access == Access::read) {
      used_[id.index()] = true;
      continue;
    }
    clock_.device_ready[id.index()] = now();
    // What was copied out earlier is out of date.
    if (record_.has(id, Tier::host)) record_.close(id, Tier::host);
  }
  for (const Operand& operand : operands)
    if (operand.access != Access::read && !fixed(storage(operand.tensor)))
      used_[storage(operand.tensor).index()] = false;
  for (const Operand& operand : operands) {
    const StorageId id = storage(operand.tensor);
    if (fixed(id) || !record_.holds(operand.tensor, Tier::device)) continue;
    next_[id.index()] = facts_.next_use(operand.tensor, position_);
    if (next_[id.index()] == kNever) release(id);
  }
}

}  // namespace tide
