// A linear program over a few instants p1 < p2 < ..., each the start of a task. Between two of them lies an
// interval. In a plan, let for each value
//   here(i)    1 where it is on the device at instant i (a copy on its way in counts with what has arrived)
//   sent(i)    what of its first copy to host memory is done by instant i
//   fetch(i)   what is copied back within interval i
// and for each replay
//   again(i)   1 where it runs within interval i
// and for each interval its length. Every inequality below holds for these numbers of every plan, so that the
// least sum of lengths is a time no plan can beat; with more instants it comes closer.
#include "planner/bound/lower_bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cost/algorithms.h"
#include "plan/alive.h"
#include "planner/bound/bound_values.h"
#include "planner/bound/linear_program.h"
#include "planner/leaving.h"

namespace tide {
namespace {

using Column = LinearProgram::Column;
using Row = LinearProgram::Row;
constexpr Column kNone = -1;

class ProgramWriter {
 public:
  ProgramWriter(const StepFacts& facts, const CostModel& cost, const PlanningContext& context, const BoundValues& all,
                std::vector<std::int32_t> instants, double time_unit)
      : facts_(facts),
        step_(facts.step()),
        cost_(cost),
        context_(context),
        all_(all),
        values_(all.values),
        starts_(std::move(instants)),
        time_unit_(time_unit) {
    count_ = static_cast<std::int32_t>(starts_.size());
    starts_.insert(starts_.begin(), 0);
    starts_.push_back(facts_.tasks());
    vars_.resize(values_.size());
    again_.resize(step_.tasks.size());
    add_lengths();
    for (std::size_t v = 0; v < values_.size(); ++v) add_columns(v);
    for (std::size_t v = 0; v < values_.size(); ++v)
      if (!vars_[v].empty()) values_[v].rests ? add_resting_rows(v) : add_rows(v);
    add_sources();
    add_memory();
  }

  [[nodiscard]] const LinearProgram& program() const { return program_; }

 private:
  // The columns of a value at instants (here, sent) and in intervals (fetch) made + 1 .. last.
  struct Variables {
    std::int32_t made = 0, last = -1;  // intervals
    std::vector<Column> here, sent, fetch;
    Column stays = kNone;  // of what may rest: 1 where it is on the device all the time
    [[nodiscard]] bool empty() const { return fetch.empty(); }
    [[nodiscard]] Column at(const std::vector<Column>& list, std::int32_t i) const {
      const std::int32_t k = i - made - 1;
      return k >= 0 && k < static_cast<std::int32_t>(list.size()) ? list[static_cast<std::size_t>(k)] : kNone;
    }
  };

  // Interval i is from the start of task start(i) to that of start(i + 1); instant i is start(i).
  [[nodiscard]] std::int32_t start(std::int32_t i) const { return starts_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::int32_t interval_of(std::int32_t position) const {
    return static_cast<std::int32_t>(std::upper_bound(starts_.begin() + 1, starts_.end() - 1, position) -
                                     starts_.begin()) -
           1;
  }
  [[nodiscard]] bool used_in(const BoundValue& value, std::int32_t i) const {
    return value.used_within(start(i), start(i + 1));
  }
  [[nodiscard]] bool used_at(const BoundValue& value, std::int32_t i) const {
    return value.used_within(start(i), start(i) + 1);
  }

  [[nodiscard]] double seconds(TaskId task) const { return fastest_compute_seconds(step_, cost_, task) / time_unit_; }
  [[nodiscard]] double memory(std::int64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(context_.memory[Tier::device]->count());
  }

  void add(Row row, Column column, double coefficient) {
    if (column != kNone) program_.add(row, column, coefficient);
  }

  // An interval is no shorter than what any one lane does in it.
  void add_lengths() {
    constexpr double kLongest = 1e3;  // times the unit: what is slower than that is not below the bound either
    for (std::int32_t i = 0; i <= count_; ++i) {
      double tasks = 0;
      for (std::int32_t t = start(i); t < start(i + 1); ++t) tasks += seconds(TaskId(static_cast<std::size_t>(t)));
      const Column length = program_.add_column(tasks, kLongest, 1);
      for (auto* const lane : {&compute_, &out_, &in_}) {
        lane->push_back(program_.add_row(lane == &compute_ ? tasks : 0, kUnbounded));
        add(lane->back(), length, 1);
      }
    }
  }

  void add_columns(std::size_t v) {
    const BoundValue& value = values_[v];
    Variables vars;
    vars.made = value.rests ? -1 : interval_of(std::max(value.made, 0));
    vars.last = interval_of(value.until);
    if (vars.last <= vars.made) return;
    const bool copies = can_leave(context_);
    const double seconds = value.copy_seconds / time_unit_;
    for (std::int32_t i = vars.made + 1; i <= vars.last; ++i) {
      vars.here.push_back(used_at(value, i) && i > 0 ? kNone : program_.add_column(0, 1));
      vars.fetch.push_back(program_.add_column(0, copies ? 1 : 0));
      add(in_[static_cast<std::size_t>(i)], vars.fetch.back(), -seconds);
    }
    if (!value.enters()) {
      // sent(i) for the instants behind intervals made .. last.
      for (std::int32_t i = vars.made + 1; i <= vars.last + 1; ++i) {
        vars.sent.push_back(program_.add_column(0, copies ? 1 : 0));
        add(out_[static_cast<std::size_t>(i - 1)], vars.sent.back(), -seconds);
        if (i <= vars.last) add(out_[static_cast<std::size_t>(i)], vars.sent.back(), seconds);
      }
    }
    vars_[v] = std::move(vars);
    if (value.replay.valid()) add_replay(value.replay, vars_[v]);
  }

  // A replay counts once, whatever it makes.
  void add_replay(TaskId replay, const Variables& vars) {
    auto& columns = again_[replay.index()];
    columns.resize(static_cast<std::size_t>(count_) + 1, kNone);
    for (std::int32_t i = vars.made + 1; i <= vars.last; ++i) {
      Column& column = columns[static_cast<std::size_t>(i)];
      if (column != kNone) continue;
      column = program_.add_column(0, 1);
      add(compute_[static_cast<std::size_t>(i)], column, -seconds(replay));
    }
  }
  [[nodiscard]] Column again(TaskId replay, std::int32_t i) const {
    if (!replay.valid() || again_[replay.index()].empty()) return kNone;
    return again_[replay.index()][static_cast<std::size_t>(i)];
  }

  // Whether a value can be had in interval i for a reason that no column says.
  [[nodiscard]] bool had(std::size_t v, std::int32_t i) const { return i <= vars_[v].made || used_in(values_[v], i); }
  // What makes it available in interval i: it was there at its beginning, or came back within it.
  void add_availability(Row row, std::size_t v, std::int32_t i, double coefficient) {
    add(row, vars_[v].at(vars_[v].here, i), coefficient);
    add(row, vars_[v].at(vars_[v].fetch, i), coefficient);
    add(row, again(values_[v].replay, i), coefficient);
  }

  void add_rows(std::size_t v) {
    const BoundValue& value = values_[v];
    const Variables& vars = vars_[v];
    const std::int32_t last_used = interval_of(value.uses.back());
    for (std::int32_t i = vars.made + 1; i <= vars.last; ++i) {
      // A use in interval i finds it there; one at its very beginning, if it could be had in the interval before.
      if (used_at(value, i)) {
        if (!had(v, i - 1)) add_availability(program_.add_row(1, kUnbounded), v, i - 1, 1);
      } else {
        if (used_in(value, i)) add_availability(program_.add_row(1, kUnbounded), v, i, 1);
        // What is there at instant i was there in the interval before.
        if (!had(v, i - 1)) {
          const Row row = program_.add_row(0, kUnbounded);
          add(row, vars.at(vars.here, i), -1);
          add_availability(row, v, i - 1, 1);
        }
        // At any instant before its last use it is here, or has been sent, or will be made again before it is used.
        if (i <= last_used && !value.enters()) {
          const Row row = program_.add_row(1, kUnbounded);
          add(row, vars.at(vars.here, i), 1);
          add(row, vars.at(vars.sent, i), 1);
          const std::int32_t next = interval_of(*std::lower_bound(value.uses.begin(), value.uses.end(), start(i)));
          for (std::int32_t j = i; j <= next; ++j) add(row, again(value.replay, j), 1);
        }
      }
      if (value.enters()) continue;  // which the host may have a copy of
      // What was sent stays so, and nothing comes back before it was sent.
      const Row grows = program_.add_row(0, kUnbounded);
      add(grows, vars.at(vars.sent, i), -1);
      add(grows, vars.at(vars.sent, i + 1), 1);
      const Row order = program_.add_row(0, kUnbounded);
      add(order, vars.at(vars.fetch, i), -1);
      add(order, vars.at(vars.sent, i + 1), 1);
    }
  }

  // What may rest is on the device all the time, or it starts from the host and, where a task changes it, goes back
  // there.
  void add_resting_rows(std::size_t v) {
    const BoundValue& value = values_[v];
    Variables& vars = vars_[v];
    const Column stays = vars.stays = program_.add_column(0, 1);
    for (std::int32_t i = 0; i <= vars.last; ++i) {
      const Row row = program_.add_row(0, kUnbounded);
      add(row, vars.at(vars.here, i), 1);
      if (vars.at(vars.here, i) != kNone) add(row, stays, -1);
      if (i == 0) {
        const Row first = program_.add_row(-kUnbounded, 0);
        add(first, vars.at(vars.here, 0), 1);
        add(first, stays, -1);
      } else if (used_at(value, i)) {
        if (!used_in(value, i - 1)) add_availability(program_.add_row(1, kUnbounded), v, i - 1, 1);
        continue;
      } else if (!used_in(value, i - 1)) {
        const Row kept = program_.add_row(0, kUnbounded);
        add(kept, vars.at(vars.here, i), -1);
        add_availability(kept, v, i - 1, 1);
      }
      if (used_in(value, i)) add_availability(program_.add_row(1, kUnbounded), v, i, 1);
    }
    if (!value.changes) return;
    const Row back = program_.add_row(1, kUnbounded);
    add(back, stays, 1);
    for (std::int32_t i = interval_of(value.uses.back()); i <= count_; ++i) {
      const Column part = program_.add_column(0, 1);
      add(back, part, 1);
      add(out_[static_cast<std::size_t>(i)], part, -value.copy_seconds / time_unit_);
    }
  }

  // A replay finds what it reads.
  void add_sources() {
    for (std::size_t t = 0; t < again_.size(); ++t) {
      for (std::int32_t i = 0; i < static_cast<std::int32_t>(again_[t].size()); ++i) {
        if (again_[t][static_cast<std::size_t>(i)] == kNone) continue;
        for (const Operand& operand : step_.operands_of(TaskId(t))) {
          const std::int32_t source = all_.of_tensor[operand.tensor.index()];
          if (operand.access != Access::read || source < 0) continue;
          const auto s = static_cast<std::size_t>(source);
          if (vars_[s].empty() || had(s, i)) continue;
          const Row row = program_.add_row(0, kUnbounded);
          add(row, again_[t][static_cast<std::size_t>(i)], -1);
          add_availability(row, s, i, 1);
        }
      }
    }
  }

  // At an instant the task that starts needs its operands, and all that is here takes room beside them. Values that
  // share a storage are never here together.
  void add_memory() {
    for (std::int32_t i = 1; i <= count_; ++i) {
      const double room =
          memory(context_.memory[Tier::device]->count() - all_.fixed - all_.needed[static_cast<std::size_t>(start(i))]);
      const Row row = program_.add_row(-kUnbounded, room);
      for (std::size_t v = 0; v < values_.size(); ++v)
        add(row, vars_[v].at(vars_[v].here, i), memory(values_[v].bytes));
      add_in_place(row, i);
    }
  }

  // A result may take the place of an operand. Where that one is needed later, it has to come back.
  void add_in_place(Row memory_row, std::int32_t i) {
    const TaskId task(static_cast<std::size_t>(start(i)));
    const auto operands = step_.operands_of(task);
    std::vector<StorageId> targets;
    for (const InPlacePair& pair : step_.in_place_of(step_.task(task))) {
      const TensorId target = operands[static_cast<std::size_t>(pair.target)].tensor;
      const StorageId place = step_.tensor(target).storage;
      if (std::find(targets.begin(), targets.end(), place) != targets.end()) continue;
      targets.push_back(place);
      const Row once = program_.add_row(-kUnbounded, 1);
      for (const InPlacePair& other : step_.in_place_of(step_.task(task))) {
        const TensorId source = operands[static_cast<std::size_t>(other.source)].tensor;
        const StorageId from = step_.tensor(source).storage;
        if (other.target != pair.target || from == place || step_.storage(from).persistent ||
            step_.storage(place).persistent)
          continue;
        const std::int64_t saved =
            std::min(step_.storage(from).bytes.aligned(), step_.storage(place).bytes.aligned()).count();
        const Column taken = program_.add_column(0, 1);
        add(memory_row, taken, -memory(saved));
        add(once, taken, 1);
        require_return(source, i, taken);
      }
    }
  }

  void require_return(TensorId source, std::int32_t i, Column taken) {
    const std::int32_t v = all_.of_tensor[source.index()];
    if (v < 0 || vars_[static_cast<std::size_t>(v)].empty()) return;
    const BoundValue& value = values_[static_cast<std::size_t>(v)];
    const Variables& vars = vars_[static_cast<std::size_t>(v)];
    if (i <= vars.made || i > vars.last) return;
    const bool at_once = value.used_within(start(i) + 1, start(i + 1));
    const bool next = !at_once && i < vars.last;
    if (!at_once && !next) return;
    // taken <= fetch + again, or here at the next instant <= 1 - taken + fetch + again.
    const Row row = program_.add_row(at_once ? 0 : -1, kUnbounded);
    add(row, taken, -1);
    add(row, vars.at(vars.fetch, i), 1);
    add(row, again(value.replay, i), 1);
    if (at_once) return;
    if (vars.at(vars.here, i + 1) != kNone)
      add(row, vars.at(vars.here, i + 1), -1);
    else
      program_.add(row, one(), -1);
  }

  // A column that is 1.
  Column one() {
    if (one_ == kNone) one_ = program_.add_column(1, 1);
    return one_;
  }

  const StepFacts& facts_;
  const Step& step_;
  const CostModel& cost_;
  const PlanningContext& context_;
  const BoundValues& all_;
  const std::vector<BoundValue>& values_;
  std::vector<std::int32_t> starts_;  // 0, the instants, the number of tasks
  std::int32_t count_ = 0;            // of instants
  double time_unit_;
  LinearProgram program_;
  std::vector<Row> compute_, out_, in_;     // by interval
  std::vector<Variables> vars_;             // by value
  std::vector<std::vector<Column>> again_;  // by replay and interval
  Column one_ = kNone;
};

// Bytes alive at each position if nothing ever left.
std::vector<std::int64_t> bytes_kept(const BoundValues& all) {
  AliveSum sum(all.needed.size());
  for (const BoundValue& value : all.values) sum.add(value.made, value.uses.back(), value.bytes);
  return std::move(sum).take();
}

// As many as a program of a second or so allows. A few do: the bound comes from the highest peak above all.
std::int32_t count_instants(const BoundValues& all) {
  constexpr double kColumns = 5000, kColumnsOfValue = 4;
  constexpr std::int32_t kMost = 24, kLeast = 1;
  double per_instant = 1;
  for (const BoundValue& value : all.values)
    per_instant += kColumnsOfValue * (value.until - value.made) / static_cast<double>(all.needed.size());
  return std::clamp(static_cast<std::int32_t>(kColumns / per_instant), kLeast, kMost);
}

// The step in so many parts of about the same time and number of tasks, and of each the position where most is alive.
std::vector<std::int32_t> choose_instants(const std::vector<double>& seconds, const std::vector<std::int64_t>& live,
                                          std::int32_t count) {
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const auto tasks = static_cast<std::int32_t>(seconds.size());
  std::vector<std::int32_t> chosen;
  double passed = 0;
  std::int32_t part = 0, best = -1;
  for (std::int32_t t = 0; t < tasks; ++t) {
    passed += 0.5 * seconds[static_cast<std::size_t>(t)] / all + 0.5 / tasks;
    if (t > 0 && (best < 0 || live[static_cast<std::size_t>(t)] > live[static_cast<std::size_t>(best)])) best = t;
    if (passed * count < part + 1 && t + 1 < tasks) continue;
    part = static_cast<std::int32_t>(passed * count);
    if (best >= 0) chosen.push_back(best);
    best = -1;
  }
  return chosen;
}

constexpr std::int64_t kSmallestShare = 2000;  // of the budget: what is smaller is left out
constexpr int kIterations = 30'000;            // of the solver; what it has then is a bound too

}  // namespace

LowerBound lower_bound(const Step& step, const CostModel& cost, const PlanningContext& context) {
  std::vector<double> seconds;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t)
    seconds.push_back(fastest_compute_seconds(step, cost, TaskId(t)));
  LowerBound result{std::accumulate(seconds.begin(), seconds.end(), 0.0), false};
  if (!context.memory[Tier::device] || step.ordered_tasks < 2) return result;
  const StepFacts facts(step, {});
  const BoundValues all =
      bound_values(facts, cost, context,
                   context.memory[Tier::device]->count() /
                       std::max<std::int64_t>(kSmallestShare, std::int64_t{2} * step.ordered_tasks));
  const double unit = result.seconds;
  const ProgramWriter writer(facts, cost, context, all, choose_instants(seconds, bytes_kept(all), count_instants(all)),
                             unit);
  const auto multipliers = solve(writer.program(), kIterations);
  if (!multipliers) return result;
  result.solved = true;
  const double bound = writer.program().bound(*multipliers);
  result.seconds = std::max(result.seconds, bound * unit);
  return result;
}

LowerBound fused_lower_bound(const BuildStep& build, const CostModel& cost, const PlanningContext& context) {
  const Step whole = build({});
  LowerBound least = lower_bound(whole, cost, context);
  if (!context.memory[Tier::device] || !whole.options.fuse) return least;
  std::size_t tasks = whole.tasks.size();
  for (const Bytes limit : fuse_limits(context.memory[Tier::device], whole.options.activations)) {
    const Step step = build({limit});
    if (step.tasks.size() == tasks) continue;
    tasks = step.tasks.size();
    if (lower_bound(step, cost, {}).seconds >= least.seconds) continue;
    const LowerBound other = lower_bound(step, cost, context);
    if (other.seconds < least.seconds) least = other;
  }
  return least;
}

}  // namespace tide
