// The fastest schedule of a small step within a budget, by exhaustive search (A* with dominance).
//
// It is optimal over all schedules that
//   - run the step's tasks in its order, and any replay any number of times in between, on one lane;
//   - copy any value that does not persist to host memory and back, one copy each way at a time, in any order;
//   - start an op at time zero or when another one ends (starting later never helps: in between nothing changes);
//   - let a result overwrite an operand wherever the task allows it;
//   - hold at no instant more bytes than the budget: persistent storages, values on the device, those on their
//     way in, results from the start of their task, and the smallest workspace.
// Tasks take the time of their fastest algorithm. Addresses do not matter, so that plans can only be slower.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "cost/algorithms.h"
#include "planner/finish/finish.h"
#include "planner/finish/floor.h"

namespace tide::testing_support {

class ExactSearch {
 public:
  static constexpr std::size_t kMostValues = 64;

  // REQUIRES: fits(step).
  ExactSearch(const Step& step, const CostModel& cost, Bytes memory) : step_(step), memory_(memory.count()) {
    for (std::size_t t = 0; t < step.tensors.size(); ++t) {
      of_tensor_.push_back(-1);
      const Storage& storage = step.storage(step.tensors[t].storage);
      if (storage.persistent) continue;
      of_tensor_.back() = static_cast<int>(bytes_.size());
      bytes_.push_back(storage.bytes.aligned().count());
      copy_seconds_.push_back(cost.copy_seconds(storage.bytes, Tier::device, Tier::host));
    }
    memory_ -= persistent_bytes(step).count();
    replay_of_.assign(bytes_.size(), -1);
    made_.assign(bytes_.size(), -1);
    uses_.resize(bytes_.size());
    for (std::size_t t = 0; t < step.tasks.size(); ++t) describe(TaskId(t), cost);
    tail_.assign(step.ordered_tasks + 1, 0);
    for (std::size_t t = step.ordered_tasks; t-- > 0;) tail_[t] = tail_[t + 1] + tasks_[t].seconds;
    for (std::size_t t = step.ordered_tasks; t-- > 0;) extend(t);
  }

  static bool fits(const Step& step) {
    std::size_t count = 0;
    for (const Tensor& tensor : step.tensors) count += step.storage(tensor.storage).persistent ? 0U : 1U;
    return count <= kMostValues;
  }
  // Values that can be run again and are needed by the backward pass.
  [[nodiscard]] int droppable() const {
    int count = 0;
    for (std::size_t v = 0; v < bytes_.size(); ++v) count += replay_of_[v] >= 0 && last_use(v) > made_[v] + 1 ? 1 : 0;
    return count;
  }

  // The shortest time if it is below `limit`, else `limit`; nothing where that takes too many states.
  std::optional<double> shortest(double limit, std::size_t most_states) {
    limit_ = limit * (1 - 1e-9);
    State first;
    for (std::size_t v = 0; v < bytes_.size(); ++v)
      if (made_[v] < 0 && !uses_[v].empty()) first.device |= bit(v);
    if (bytes_of(first.device) > memory_) return limit;
    push(first);
    while (!open_.empty()) {
      const auto [bound, time, index] = open_.top();
      open_.pop();
      if (pool_[index].beaten) continue;
      const State state = pool_[index].state;
      if (state.position == ordered() && state.task < 0) return bound;
      if (++states_ > most_states) return std::nullopt;
      choose_compute(state);
    }
    return limit;
  }

 private:
  using Set = std::uint64_t;

  struct Description {
    double seconds = 0;
    Set reads = 0, writes = 0, adds = 0;
    std::int64_t workspace = 0;
    std::vector<std::pair<int, int>> in_place;  // values: source, target
  };
  struct State {
    double now = 0;
    std::array<double, 3> end{};  // of the ops under way: compute, out, in
    int task = -1, out = -1, in = -1;
    std::int32_t position = 0;  // the next task of the step
    Set device = 0, host = 0;
  };
  struct Known {
    State state;
    bool beaten = false;  // by a state that dominates it
  };
  struct Open {
    double bound, time;
    std::size_t index;                         // into pool_
    bool operator<(const Open& other) const {  // the queue's top is the largest
      return bound != other.bound ? bound > other.bound : time < other.time;
    }
  };

  static Set bit(std::size_t v) { return Set{1} << v; }
  static Set bit(int v) { return v < 0 ? 0 : Set{1} << v; }
  [[nodiscard]] std::int32_t ordered() const { return static_cast<std::int32_t>(step_.ordered_tasks); }
  [[nodiscard]] std::int32_t last_use(std::size_t v) const { return uses_[v].empty() ? -1 : uses_[v].back(); }
  [[nodiscard]] std::int64_t bytes_of(Set set) const {
    std::int64_t total = 0;
    for (; set != 0; set &= set - 1) total += bytes_[static_cast<std::size_t>(std::countr_zero(set))];
    return total;
  }
  template <typename Visit>
  static void for_each(Set set, Visit visit) {
    for (; set != 0; set &= set - 1) visit(static_cast<std::size_t>(std::countr_zero(set)));
  }

  void describe(TaskId task, const CostModel& cost) {
    Description d;
    d.seconds = cost.task_seconds(step_, task, fastest_algorithm(step_, cost, task));
    d.workspace = step_.algorithms_of(task)[smallest_algorithm(step_, task)].workspace.aligned().count();
    const bool once = task.index() < step_.ordered_tasks;
    const auto operands = step_.operands_of(task);
    for (const Operand& operand : operands) {
      const int v = of_tensor_[operand.tensor.index()];
      if (v < 0) continue;
      const auto value = static_cast<std::size_t>(v);
      const bool first = once && made_[value] < 0 && operand.access != Access::read;
      if (first) made_[value] = task.value();
      if (operand.access == Access::read) d.reads |= bit(v);
      if (operand.access == Access::write || first) d.writes |= bit(v);
      if (operand.access == Access::accumulate && !first) d.adds |= bit(v);
      if (!once && operand.access != Access::read) replay_of_[value] = task.value();
      if (once && (uses_[value].empty() || uses_[value].back() != task.value())) uses_[value].push_back(task.value());
    }
    for (const InPlacePair pair : step_.in_place_of(step_.task(task))) {
      const int source = of_tensor_[operands[static_cast<std::size_t>(pair.source)].tensor.index()];
      const int target = of_tensor_[operands[static_cast<std::size_t>(pair.target)].tensor.index()];
      if (source >= 0 && target >= 0 && source != target) d.in_place.emplace_back(source, target);
    }
    tasks_.push_back(std::move(d));
  }

  // Until when each value is of use, if only for what is run again from it.
  void extend(std::size_t t) {
    until_.resize(bytes_.size(), -2);
    if (t + 1 == step_.ordered_tasks)
      for (std::size_t v = 0; v < bytes_.size(); ++v) until_[v] = last_use(v);
    if (!step_.replay_of[t].valid()) return;
    const Description& again = tasks_[step_.replay_of[t].index()];
    std::int32_t until = -1;
    for_each(again.writes, [&](std::size_t v) { until = std::max(until, until_[v]); });
    for_each(again.reads, [&](std::size_t v) { until_[v] = std::max(until_[v], until); });
  }

  [[nodiscard]] std::int32_t next_use(std::size_t v, std::int32_t position) const {
    const auto it = std::lower_bound(uses_[v].begin(), uses_[v].end(), position);
    return it == uses_[v].end() ? ordered() : *it;
  }
  [[nodiscard]] bool made(std::size_t v, const State& s) const { return made_[v] < s.position; }
  // What must be had again, though it is neither on the device nor about to be.
  [[nodiscard]] Set missing(const State& s) const {
    const Set there = s.device | bit(s.in) | (s.task >= 0 ? tasks_[static_cast<std::size_t>(s.task)].writes : 0);
    Set result = 0;
    for (std::size_t v = 0; v < bytes_.size(); ++v)
      if ((there & bit(v)) == 0 && made(v, s) && next_use(v, s.position) < ordered()) result |= bit(v);
    return result;
  }

  // No schedule from here on is shorter. Infinite where something is lost.
  [[nodiscard]] double bound(const State& s) const {
    double again = 0;
    std::vector<int> replays;
    double fetched = 0;
    std::int32_t latest = 0;
    bool lost = false;
    const Set sent = s.host | bit(s.out);
    for_each(missing(s), [&](std::size_t v) {
      if ((sent & bit(v)) != 0) {
        if (replay_of_[v] >= 0) return;
        fetched += copy_seconds_[v];
        latest = std::max(latest, next_use(v, s.position));
      } else if (!obtainable(v, s)) {
        lost = true;
      } else if (std::find(replays.begin(), replays.end(), replay_of_[v]) == replays.end()) {
        replays.push_back(replay_of_[v]);
        again += tasks_[static_cast<std::size_t>(replay_of_[v])].seconds;
      }
    });
    if (lost) return std::numeric_limits<double>::infinity();
    const bool ordered_runs = s.task >= 0 && s.task < ordered();
    const double compute = s.task >= 0 ? s.end[0] : s.now;
    double best = compute + again + tail_[static_cast<std::size_t>(s.position + (ordered_runs ? 1 : 0))];
    if (fetched > 0)
      best = std::max(best, (s.in >= 0 ? s.end[2] : s.now) + fetched + tail_[static_cast<std::size_t>(latest)]);
    return best;
  }

  [[nodiscard]] bool obtainable(std::size_t v, const State& s) const {
    if (((s.device | s.host | bit(s.in) | bit(s.out)) & bit(v)) != 0) return true;
    if (s.task >= 0 && (tasks_[static_cast<std::size_t>(s.task)].writes & bit(v)) != 0) return true;
    if (!made(v, s)) return true;
    if (replay_of_[v] < 0) return false;
    bool all = true;
    for_each(tasks_[static_cast<std::size_t>(replay_of_[v])].reads,
             [&](std::size_t source) { all = all && obtainable(source, s); });
    return all;
  }

  // Everything on the device and on its way there.
  [[nodiscard]] std::int64_t live(const State& s) const {
    Set set = s.device | bit(s.in);
    std::int64_t workspace = 0;
    if (s.task >= 0) {
      set |= tasks_[static_cast<std::size_t>(s.task)].writes;
      workspace = tasks_[static_cast<std::size_t>(s.task)].workspace;
    }
    return bytes_of(set) + workspace;
  }
  [[nodiscard]] Set locked(const State& s) const {
    Set set = bit(s.out);
    if (s.task >= 0) {
      const Description& d = tasks_[static_cast<std::size_t>(s.task)];
      set |= d.reads | d.adds | d.writes;
    }
    return set;
  }

  // All ways to drop just enough of what is not locked: `then` with each.
  template <typename Then>
  void make_room(const State& s, Then then) {
    const std::int64_t excess = live(s) - memory_;
    if (excess <= 0) return then(s);
    std::vector<std::size_t> candidates;
    for_each(s.device & ~locked(s), [&](std::size_t v) { candidates.push_back(v); });
    drop_from(s, candidates, 0, excess, then);
  }
  template <typename Then>
  void drop_from(const State& s, const std::vector<std::size_t>& candidates, std::size_t next, std::int64_t excess,
                 Then& then) {
    if (excess <= 0) return then(s);
    for (std::size_t k = next; k < candidates.size(); ++k) {
      State dropped = s;
      dropped.device &= ~bit(candidates[k]);
      drop_from(dropped, candidates, k + 1, excess - bytes_[candidates[k]], then);
    }
  }

  void choose_compute(const State& s) {
    if (s.task >= 0) return choose_out(s);
    choose_out(s);  // idle
    if (s.position < ordered()) start(s, s.position);
    for (std::size_t t = step_.ordered_tasks; t < tasks_.size(); ++t) {
      bool useful = false;
      for_each(tasks_[t].writes, [&](std::size_t v) {
        useful = useful || (made(v, s) && ((s.device | bit(s.in)) & bit(v)) == 0 && until_[v] >= s.position);
      });
      if (useful) start(s, static_cast<int>(t));
    }
  }

  void start(const State& s, int task) {
    const Description& d = tasks_[static_cast<std::size_t>(task)];
    if (((d.reads | d.adds) & ~s.device) != 0) return;
    if (((d.adds | d.writes) & (bit(s.out) | bit(s.in))) != 0) return;
    State next = s;
    next.task = task;
    next.end[0] = s.now + d.seconds;
    next.host &= ~d.adds;
    overwrite(next, d, 0, 0);
  }
  // Each way to put results in the place of operands.
  void overwrite(const State& s, const Description& d, std::size_t pair, Set taken) {
    if (pair == d.in_place.size()) return make_room(s, [&](const State& fits) { choose_out(fits); });
    const auto [source, target] = d.in_place[pair];
    const bool possible = (s.device & bit(source)) != 0 && ((taken | bit(s.out)) & bit(source)) == 0 &&
                          (taken & bit(target)) == 0 && (s.device & bit(target)) == 0;
    const bool dead = until_[static_cast<std::size_t>(source)] <= s.position && s.task < ordered();
    if (possible) {
      State over = s;
      over.device &= ~bit(source);
      overwrite(over, d, pair + 1, taken | bit(source) | bit(target));
    }
    if (!possible || !dead) overwrite(s, d, pair + 1, taken);
  }

  void choose_out(const State& s) {
    choose_in(s);
    if (s.out >= 0) return;
    const Set written = s.task >= 0 ? tasks_[static_cast<std::size_t>(s.task)].adds : 0;
    for_each(s.device & ~s.host & ~written, [&](std::size_t v) {
      if (next_use(v, s.position + 1) >= ordered() && until_[v] <= s.position + 1) return;
      State next = s;
      next.out = static_cast<int>(v);
      next.end[1] = s.now + copy_seconds_[v];
      choose_in(next);
    });
  }

  void choose_in(const State& s) {
    advance(s);
    if (s.in >= 0) return;
    const Set coming = s.device | (s.task >= 0 ? tasks_[static_cast<std::size_t>(s.task)].writes : 0);
    for_each(s.host & ~coming, [&](std::size_t v) {
      if (until_[v] < s.position) return;
      State next = s;
      next.in = static_cast<int>(v);
      next.end[2] = s.now + copy_seconds_[v];
      make_room(next, [&](const State& fits) { advance(fits); });
    });
  }

  // To where the next op ends.
  void advance(State s) {
    double next = std::numeric_limits<double>::infinity();
    if (s.task >= 0) next = std::min(next, s.end[0]);
    if (s.out >= 0) next = std::min(next, s.end[1]);
    if (s.in >= 0) next = std::min(next, s.end[2]);
    if (next == std::numeric_limits<double>::infinity()) return;
    s.now = next;
    if (s.out >= 0 && s.end[1] <= next) s.host |= bit(std::exchange(s.out, -1));
    if (s.in >= 0 && s.end[2] <= next) s.device |= bit(std::exchange(s.in, -1));
    if (s.task >= 0 && s.end[0] <= next) {
      s.device |= tasks_[static_cast<std::size_t>(s.task)].writes;
      if (s.task < ordered()) ++s.position;
      s.task = -1;
    }
    for (std::size_t v = 0; v < bytes_.size(); ++v) {
      if (until_[v] >= s.position) continue;
      if ((locked(s) & bit(v)) == 0) s.device &= ~bit(v);
      s.host &= ~bit(v);
    }
    push(s);
  }

  // At least as much is there, at least as early; what is too much can be dropped.
  static bool dominates(const State& a, const State& b) {
    if (a.now > b.now || (b.device & ~a.device) != 0 || (b.host & ~a.host) != 0 || a.end[0] > b.end[0]) return false;
    if (a.out >= 0 ? a.out != b.out || a.end[1] > b.end[1] : (bit(b.out) & ~a.host) != 0) return false;
    return a.in >= 0 ? a.in == b.in && a.end[2] <= b.end[2] : (bit(b.in) & ~a.device) == 0;
  }

  void push(State s) {
    if (s.task < 0) s.end[0] = 0;
    const double least = bound(s);
    if (least >= limit_) return;
    auto& seen = seen_[{s.position, s.task}];
    for (const std::size_t other : seen)
      if (dominates(pool_[other].state, s)) return;
    std::erase_if(seen, [&](std::size_t other) { return pool_[other].beaten = dominates(s, pool_[other].state); });
    seen.push_back(pool_.size());
    open_.push({least, s.now, pool_.size()});
    pool_.push_back({s});
  }

  const Step& step_;
  std::int64_t memory_;
  std::vector<int> of_tensor_;  // by tensor: its value, or -1
  std::vector<std::int64_t> bytes_;
  std::vector<double> copy_seconds_;
  std::vector<int> replay_of_;
  std::vector<std::int32_t> made_, until_;
  std::vector<std::vector<std::int32_t>> uses_;
  std::vector<Description> tasks_;
  std::vector<double> tail_;  // by position: the time of the tasks from there on
  double limit_ = 0;
  std::size_t states_ = 0;
  std::priority_queue<Open> open_;
  std::vector<Known> pool_;
  std::map<std::pair<std::int32_t, int>, std::vector<std::size_t>> seen_;  // by position and task under way
};

}  // namespace tide::testing_support
