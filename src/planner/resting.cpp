#include "planner/resting.h"

#include <algorithm>

#include "plan/timeline.h"
#include "planner/in_place.h"
#include "planner/layout.h"
#include "planner/rounds.h"

namespace tide {
namespace {

// Below this a copy is mostly latency: scales, shifts, statistics and biases stay on the device.
constexpr std::int64_t kWorthCopying = 64 * 1024;

// The host reads metrics from where the device wrote them, and rounds add to gradients all the time.
bool may_rest(const Storage& storage) {
  return storage.persistent && storage.entry.valid() && storage.tensor_class != TensorClass::metric &&
         storage.tensor_class != TensorClass::parameter_gradient;
}

// Persistent storages that may rest, by their number among the persistent ones; first those
// that cost least to do without.
class Candidates {
 public:
  Candidates(const Step& step, const CostModel& cost) {
    std::vector<double> absent = absences(step, cost);
    for (std::size_t s = 0; s < step.storages.size(); ++s) {
      const Storage& storage = step.storages[s];
      if (!storage.persistent) continue;
      if (may_rest(storage) && storage.bytes.count() > kWorthCopying)
        list_.push_back({count_, storage.bytes, storage.tensor_class, absent[s]});
      ++count_;
    }
    // Optimizer state is used once a step, parameters are fetched twice; and what is away longest
    // makes most room where most is alive, between the passes.
    const auto key = [](const Candidate& c) {
      return std::pair(c.tensor_class != TensorClass::optimizer_state, -c.seconds_absent);
    };
    std::stable_sort(list_.begin(), list_.end(),
                     [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
    for (const Candidate& candidate : list_) bytes_ += candidate.bytes;
  }

  // The first ones, until they have so many bytes.
  [[nodiscard]] std::vector<bool> first(Bytes wanted) const {
    std::vector<bool> chosen(count_, false);
    Bytes taken;
    for (const Candidate& candidate : list_) {
      if (taken >= wanted) break;
      taken += candidate.bytes;
      chosen[candidate.number] = true;
    }
    return chosen;
  }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] Bytes state_bytes() const {
    Bytes total;
    for (const Candidate& candidate : list_)
      if (candidate.tensor_class == TensorClass::optimizer_state) total += candidate.bytes;
    return total;
  }
  [[nodiscard]] bool empty() const { return list_.empty(); }

 private:
  struct Candidate {
    std::size_t number;
    Bytes bytes;
    TensorClass tensor_class;
    double seconds_absent;
  };

  // By storage: the seconds between its last forward and its first backward use.
  static std::vector<double> absences(const Step& step, const CostModel& cost) {
    std::vector<double> before(step.storages.size(), 0), result(step.storages.size(), 0);
    std::vector<bool> turned(step.storages.size(), false);
    double now = 0;
    for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
      const bool forward = step.tasks[t].kind == TaskKind::forward;
      for (const Operand& operand : step.operands_of(TaskId(t))) {
        const std::size_t s = step.tensor(operand.tensor).storage.index();
        if (!step.storages[s].persistent || turned[s]) continue;
        turned[s] = !forward;
        (forward ? before : result)[s] = forward ? now : now - before[s];
      }
      now += cost.task_seconds(step, TaskId(t), 0);
    }
    return result;
  }

  std::vector<Candidate> list_;
  Bytes bytes_;
  std::size_t count_ = 0;  // of all persistent storages
};

// Bytes by which a step that moves nothing exceeds its budget. Each byte that rests is moved as
// often as one of activations would be that has to leave in its stead; so rest these, and no more.
Bytes excess(Step step, const PlannerOptions& options) {
  if (options.in_place) step = merge_in_place(std::move(step));
  std::vector<Interval> lives = lifetimes(step);
  std::erase_if(lives, [](const Interval& life) { return life.last < life.first; });
  const Bytes peak = live_peak(lives).bytes;
  return peak > *options.memory ? peak - *options.memory : Bytes();
}

PlanResult plan_automatic(const Policy& policy, const Step& step, const CostModel& cost, PlannerOptions options) {
  options.rest_in_host.emplace();
  const Candidates candidates(step, cost);
  if (candidates.empty() || !options.memory) return plan_cut(policy.plan, step, cost, options);
  Bytes enough = std::min(excess(step, options), candidates.bytes());
  // Little would be gained where they are a small part of memory.
  constexpr std::int64_t kSmallPart = 8;
  if (candidates.bytes().count() < options.memory->count() / kSmallPart) enough = Bytes();
  // One plan has to do where nothing needs to rest, and where a plan takes long to make.
  constexpr std::uint32_t kManyTasks = 5'000;
  const bool hurried = enough.is_zero() || step.ordered_tasks > kManyTasks;
  std::vector<Bytes> amounts{enough, candidates.bytes()};
  // Activations may be cheaper to run again than parameters are to fetch.
  constexpr double kMostOfMemory = 0.75;
  const bool room =
      static_cast<double>(candidates.bytes().count()) < kMostOfMemory * static_cast<double>(options.memory->count());
  if (!hurried || room) amounts.push_back(Bytes());
  if (!hurried) amounts.push_back(candidates.state_bytes());
  std::sort(amounts.begin(), amounts.end());
  amounts.erase(std::unique(amounts.begin(), amounts.end()), amounts.end());

  constexpr double kWorthMoving = 1.05;  // nothing rests for a few percent
  constexpr double kGoodEnough = 1.3;    // of the time with unlimited memory, where plans take long
  const double ideal = ideal_seconds(step, cost);
  PlanResult best;
  double best_seconds = 0;
  for (const Bytes amount : amounts) {
    if (best.plan && best_seconds <= (hurried ? kGoodEnough : 1) * ideal) break;
    options.rest_in_host = candidates.first(amount);
    PlanResult result = plan_cut(policy.plan, step, cost, options);
    const double seconds =
        result.plan ? simulate(*result.plan, cost).seconds / (amount.is_zero() ? kWorthMoving : 1) : 0;
    if (best.plan && (!result.plan || seconds >= best_seconds)) continue;
    best = std::move(result);
    best_seconds = seconds;
  }
  // What is feasible does not depend on what was fastest.
  options.rest_in_host = candidates.first(candidates.bytes());
  options.memory = Bytes();
  PlanResult least = plan_cut(policy.plan, step, cost, options);
  best.floor = least.floor;
  best.bottleneck_task = std::move(least.bottleneck_task);
  return best;
}

}  // namespace

Resting resting_storages(const Step& step, const PlannerOptions& options) {
  Resting resting;
  if (!options.rest_in_host || options.rest_in_host->empty()) return resting;
  resting.resize(step.storages.size());
  std::size_t number = 0;
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    if (!step.storages[s].persistent) continue;
    if (number >= options.rest_in_host->size()) break;
    resting[s] = (*options.rest_in_host)[number++] && may_rest(step.storages[s]);
  }
  return resting;
}

std::vector<bool> rest_in_host(const Plan& plan) {
  const Phase& phase = plan.phases.front();
  Resting resting(phase.step->storages.size(), false);
  for (const Residency& r : phase.residencies)
    if (r.first == kEntry && r.tier == Tier::host) resting[r.storage.index()] = true;
  std::vector<bool> result;
  for (std::size_t s = 0; s < resting.size(); ++s)
    if (phase.step->storages[s].persistent) result.push_back(resting[s]);
  return result;
}

PlanResult plan_with_parameters(const Policy& policy, Step step, const CostModel& cost, PlannerOptions options) {
  if (!policy.rests_parameters) {
    if (options.parameters == Parameters::host)
      throw Error("policy '{}' keeps parameters on the device; use auto, superneurons or offload for --parameters host",
                  policy.name);
    options.rest_in_host.reset();
    return plan_cut(policy.plan, step, cost, options);
  }
  if (options.rest_in_host || options.parameters == Parameters::device)
    return plan_cut(policy.plan, step, cost, options);
  if (options.parameters == Parameters::automatic) return plan_automatic(policy, step, cost, std::move(options));
  const Candidates candidates(step, cost);
  options.rest_in_host = candidates.first(candidates.bytes());
  return plan_cut(policy.plan, step, cost, options);
}

}  // namespace tide
