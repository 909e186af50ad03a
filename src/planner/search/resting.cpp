#include "planner/search/resting.h"

#include <algorithm>

#include "cost/algorithms.h"
#include "planner/draft/in_place.h"
#include "planner/draft/resting_storages.h"
#include "planner/finish/floor.h"
#include "planner/finish/lifetimes.h"

namespace tide {
namespace {

// Persistent storages that may rest, by their number among the persistent ones; first those
// that cost least to do without.
class Candidates {
 public:
  Candidates(const Step& step, const CostModel& cost, const PlannerOptions& options) {
    std::vector<double> absent = absences(step, cost);
    for (std::size_t s = 0; s < step.storages.size(); ++s) {
      const Storage& storage = step.storages[s];
      if (!storage.persistent) continue;
      if (is_worth_resting(storage, options)) list_.push_back({count_, storage.bytes, storage.tensor_class, absent[s]});
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
      now += fastest_compute_seconds(step, cost, TaskId(t));
    }
    return result;
  }

  std::vector<Candidate> list_;
  Bytes bytes_;
  std::size_t count_ = 0;  // of all persistent storages
};

// Bytes by which a step that moves nothing exceeds its budget. Each byte that rests is moved as
// often as one of activations would be that has to leave in its stead; so rest these, and no more.
Bytes beyond(Bytes memory, const Step& step) {
  const Bytes peak = bytes_alive(step);
  return peak > memory ? peak - memory : Bytes();
}

}  // namespace

RestingChoices::RestingChoices(const Policy& policy, const Step& step, const CostModel& cost,
                               const PlanningContext& context) {
  if (!policy.rests_parameters) {
    if (context.parameters == Parameters::host)
      throw Error("policy '{}' keeps parameters on the device; use auto, superneurons or offload for --parameters host",
                  policy.name);
    return;
  }
  only_ = context.rest_in_host;
  if (only_ || context.parameters == Parameters::device) return;
  if (context.parameters == Parameters::automatic) {
    list_automatic(step, cost, context);
    return;
  }
  const Candidates candidates(step, cost, context);
  only_ = candidates.first(candidates.bytes());
}

void RestingChoices::list_automatic(const Step& step, const CostModel& cost, const PlanningContext& context) {
  only_.emplace();
  const Candidates candidates(step, cost, context);
  const std::optional<Bytes>& memory = context.memory[Tier::device];
  if (candidates.empty() || !memory) return;
  all_ = candidates.first(candidates.bytes());
  const Step merged = context.in_place ? merge_in_place(step) : step;
  // In quarters, so that what is known of a step with that much away serves many budgets.
  constexpr std::int64_t kQuarters = 4;
  const Bytes part((candidates.bytes().count() + kQuarters - 1) / kQuarters);
  Bytes wanted = std::min(beyond(*memory, merged).aligned(part.count()), candidates.bytes());
  // Little would be gained where they are a small part of memory.
  constexpr std::int64_t kSmallPart = 8;
  if (candidates.bytes().count() < memory->count() / kSmallPart) wanted = Bytes();
  std::vector<Bytes> amounts{Bytes()};
  // Activations may be cheaper to run again than parameters are to fetch, so that nothing rests in one of the plans.
  // All of them do where the step would hardly fit otherwise.
  constexpr std::int64_t kNearFloor = 4;  // a quarter above it
  const Bytes floor = smallest_floor(merged).bytes;
  const bool is_near = *memory < floor + Bytes(floor.count() / kNearFloor);
  // Where plans take long to make, no more than what is needed.
  constexpr std::uint32_t kManyTasks = 5'000;
  if (is_near || (!wanted.is_zero() && step.ordered_tasks <= kManyTasks)) amounts.push_back(candidates.bytes());
  if (!wanted.is_zero()) amounts.push_back(wanted);
  if (!wanted.is_zero() && step.ordered_tasks <= kManyTasks) amounts.push_back(candidates.state_bytes());
  std::sort(amounts.begin(), amounts.end());
  amounts.erase(std::unique(amounts.begin(), amounts.end()), amounts.end());
  for (const Bytes amount : amounts) list_.push_back({candidates.first(amount), amount});
}

std::vector<bool> rest_in_host(const Plan& plan) {
  const Phase& phase = plan.phases.front();
  std::vector<bool> resting(phase.step->storages.size(), false);
  for (const Residency& r : phase.residencies)
    if (r.first == kEntry && r.tier == Tier::host) resting[r.storage.index()] = true;
  std::vector<bool> result;
  for (std::size_t s = 0; s < resting.size(); ++s)
    if (phase.step->storages[s].persistent) result.push_back(resting[s]);
  return result;
}

}  // namespace tide
