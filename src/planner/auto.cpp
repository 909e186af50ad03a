// The default, on a batch as it is: plans in every way there is and keeps the one that the simulator finds fastest.
#include <algorithm>
#include <array>
#include <span>

#include "cost/memoized.h"
#include "plan/timeline.h"
#include "planner/best.h"
#include "planner/finish.h"
#include "planner/forecast.h"
#include "planner/in_place.h"
#include "planner/joint.h"
#include "planner/policies.h"
#include "planner/runtime.h"
#include "planner/segments.h"

namespace tide {
namespace {

// The first ones are tried on steps of any size.
using First = Trade::First;
constexpr std::array<Trade, 14> kTrades{{
    {0, 0},
    {0.8, 0.05, First::dearest},
    {0.8, 0.05},
    {0.4, 0.05, First::dearest},
    {0.1, 0},
    {0.2, 0},
    {0.4, 0},
    {0.6, 0},
    {0.95, 0},
    {0.2, 0, First::dearest},
    {0.95, 0, First::dearest},
    {0, 0, First::longest, true},
    {0.4, 0, First::longest, true},
    {0.8, 0.05, First::dearest, true},
}};
constexpr std::size_t kTradesOfLargeSteps = 2;
constexpr std::size_t kPackedOfSmallSteps = 32, kPacked = 12, kPackedOfLargeSteps = 3;  // drafts
constexpr std::uint32_t kSmallStep = 500, kLargeStep = 4000;                            // tasks

constexpr std::size_t kMostOps = 4;  // of a runtime's plan, times the step's tasks
// Of the time with unlimited memory:
constexpr double kAsGood = 1 + 1e-12;  // no other policy can be faster
constexpr double kGoodEnough = 1.001;  // for more than trying them
constexpr double kNoNeedForRuntimes = 1.2;
constexpr double kHardlyWaits = 1.005;  // of the time that the tasks take

// The joint planner with every trade and length of segments. Packing takes most of the time, so drafts are packed in
// the order of what is forecast for them, and only while they may be faster than the best.
class JointAttempts {
 public:
  JointAttempts(const Step& step, const StepFacts& facts, const CostModel& cost, const PlannerOptions& options)
      : step_(step), facts_(facts), cost_(cost), options_(options) {}

  void plan(std::span<const Trade> trades, const std::vector<std::vector<bool>>& heads) {
    for (const std::vector<bool>& kept : heads)
      for (const Trade& trade : trades)
        // Where none would be dropped anyway, it does not matter what must not be.
        if (plan(trade, kept, 100) == Outcome::as_with_other_heads) break;
    sort();
    // Copies need room to run ahead: leave some where they wait.
    const std::size_t refined = std::min(attempts_.size(), kRefined);
    for (std::size_t k = 0; k < refined; ++k)
      for (const std::int64_t percent : {97, 94, 89, 80})
        if (attempts_[k].waits) plan(*attempts_[k].trade, *attempts_[k].heads, percent);
    sort();
  }

  void offer_to(Best& best, std::size_t packed) {
    for (Attempt& attempt : attempts_) {
      // Placement loses a little: aim lower until it fits.
      for (const std::int64_t less : {0, 2, 5, 9}) {
        if (packed == 0 || best.within(attempt.seconds * kSurelyWorse)) return;
        --packed;
        std::optional<Draft> draft =
            less == 0 ? std::move(attempt.draft) : draft_of(*attempt.trade, *attempt.heads, attempt.percent - less);
        if (!draft) break;
        PlanResult result = finish_quickly(step_, std::move(*draft), cost_, options_);
        const bool fits = result.plan || result.short_of != Tier::device;
        best.offer(std::move(result));
        if (fits) break;
      }
    }
  }

 private:
  static constexpr std::size_t kRefined = 8;
  static constexpr double kSurelyWorse = 0.975;  // forecasts are not exact

  struct Attempt {
    const Trade* trade;
    const std::vector<bool>* heads;
    std::int64_t percent;  // of the budget that it was made for
    Draft draft;
    double seconds;  // forecast
    bool waits;      // for copies
  };
  enum class Outcome : std::uint8_t { added, known, as_with_other_heads, nothing };

  std::optional<Draft> draft_of(const Trade& trade, const std::vector<bool>& heads, std::int64_t percent) const {
    return plan_jointly(facts_, cost_, options_, Bytes(options_.memory->count() / 100 * percent), trade, heads);
  }

  Outcome plan(const Trade& trade, const std::vector<bool>& heads, std::int64_t percent) {
    std::optional<Draft> draft = draft_of(trade, heads, percent);
    if (!draft) return Outcome::nothing;
    double computing = 0;
    for (const Op& op : draft->ops)
      if (op.kind == OpKind::run)
        computing += cost_.task_seconds(step_, op.task, fastest_algorithm(step_, cost_, op.task));
    const double seconds = forecast_seconds(step_, cost_, *options_.memory, *draft);
    for (const Attempt& other : attempts_)
      if (other.seconds == seconds && other.draft.ops.size() == draft->ops.size() && other.percent == percent)
        return other.trade == &trade ? Outcome::as_with_other_heads : Outcome::known;
    attempts_.push_back({&trade, &heads, percent, std::move(*draft), seconds, seconds > computing * kHardlyWaits});
    return Outcome::added;
  }

  void sort() {
    std::stable_sort(attempts_.begin(), attempts_.end(),
                     [](const Attempt& a, const Attempt& b) { return a.seconds < b.seconds; });
  }

  const Step& step_;
  const StepFacts& facts_;
  const CostModel& cost_;
  const PlannerOptions& options_;
  std::vector<Attempt> attempts_;
};

// The runtime of SuperNeurons, which fits wherever anything does, with heads that move but are
// not dropped.
void offer_runtimes(const Step& step, const CostModel& cost, const PlannerOptions& options,
                    const std::vector<bool>& heads, const Floor& floor, Best& best) {
  StepFacts facts(step, {}, resting_storages(step, options));
  facts.keep(heads);
  for (const Prefetch prefetch : {Prefetch::in_time, Prefetch::at_once})
    if (std::optional<Draft> draft =
            VirtualRuntime(facts, cost, *options.memory, options, prefetch).run_within(kMostOps * step.tasks.size()))
      best.offer(finish_placed(step, std::move(*draft), floor.bytes, floor.task, options));
}

// All other policies. Where parameters rest, those that know nothing of it do not count.
void offer_others(const Step& step, const CostModel& cost, PlannerOptions options, Best& best) {
  const Resting resting = resting_storages(step, options);
  const bool any_rests = std::find(resting.begin(), resting.end(), true) != resting.end();
  options.cut = {};
  bool vdnn_fits = false;
  for (const Policy& policy : policies()) {
    if (policy.plan == plan_auto || (any_rests && !policy.rests_parameters)) continue;
    // SuperNeurons was first, and vDNN+ without sub-batches is vDNN.
    if ((policy.plan == plan_superneurons && options.cache) || policy.plan == plan_vdnn_plus) continue;
    PlanResult result = policy.plan(step, cost, options);
    vdnn_fits = vdnn_fits || (result.plan && (policy.plan == plan_vdnn_conv || policy.plan == plan_vdnn_all));
    best.offer(std::move(result));
  }
  if (vdnn_fits || any_rests) return;
  // With the smallest algorithms, as vDNN+ has it, where the fastest do not fit.
  options.algorithms = Algorithms::smallest;
  for (const PolicyFunction plan : {plan_vdnn_conv, plan_vdnn_all}) best.offer(plan(step, cost, options));
}

}  // namespace

PlanResult plan_whole(Step step, const CostModel& model, const PlannerOptions& options) {
  const MemoizedCost cost(model, step);
  const double ideal = ideal_seconds(step, cost);
  Best best(cost);
  best.offer(plan_liveness(step, cost, options));
  const Step apart = step;  // where tasks are run again, other results can be in place
  if (options.in_place) step = merge_in_place(std::move(step));
  const Floor floor = smallest_floor(step, resting_storages(step, options));
  best.offer_floor(floor.bytes, floor.task);
  if (!options.memory || best.within(ideal * kAsGood)) return std::move(best).take();
  if (*options.memory < floor.bytes) return std::move(best).take();
  PlannerOptions merged = options;  // results are in place already
  merged.in_place = false;
  merged.cache = true;  // which fits wherever anything does
  best.offer(plan_superneurons(step, cost, merged));
  offer_others(apart, cost, options, best);
  if (best.within(ideal * kGoodEnough)) return std::move(best).take();
  const StepFacts facts(step, {}, resting_storages(step, options));
  const Segments segments(facts);
  const std::int64_t balanced = segments.balanced();
  const bool large = step.ordered_tasks > kLargeStep;
  const std::span<const Trade> trades(kTrades.data(), large ? kTradesOfLargeSteps : kTrades.size());
  std::vector<std::vector<bool>> heads{segments.heads(balanced), segments.heads(4 * balanced)};
  if (!large) heads.insert(heads.end(), {segments.heads(segments.largest()), segments.heads(0)});
  JointAttempts joint(step, facts, cost, options);
  joint.plan(trades, heads);
  joint.offer_to(best, large ? kPackedOfLargeSteps : step.ordered_tasks < kSmallStep ? kPackedOfSmallSteps : kPacked);
  if (large || best.within(ideal * kNoNeedForRuntimes)) return std::move(best).take();
  offer_runtimes(step, cost, options, heads.front(), floor, best);
  offer_runtimes(step, cost, options, heads.back(), floor, best);
  return std::move(best).take();
}

}  // namespace tide
