#include "planner/joint/attempts.h"

#include <algorithm>
#include <array>
#include <span>

#include "cost/algorithms.h"
#include "planner/finish/finish.h"
#include "planner/joint/forecast.h"
#include "planner/joint/joint.h"
#include "planner/search/enough.h"
#include "planner/search/ladder.h"

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

// The joint planner with every trade and length of segments. Packing takes most of the time, so drafts are packed in
// the order of what is forecast for them, and only while they may be faster than the best.
class JointAttempts {
 public:
  JointAttempts(const Step& step, const StepFacts& facts, const CostModel& cost, const PlanningContext& context)
      : step_(step), facts_(facts), cost_(cost), context_(context) {}

  void plan(std::span<const Trade> trades, const std::vector<std::vector<bool>>& heads) {
    for (const std::vector<bool>& kept : heads)
      for (const Trade& trade : trades)
        // Where none would be dropped anyway, it does not matter what must not be.
        if (plan(trade, kept, 100) == Outcome::as_with_other_heads) break;
    sort();
    // Copies need room to run ahead: leave some where they wait.
    const std::size_t refined = std::min(attempts_.size(), kRefined);
    for (std::size_t k = 0; k < refined; ++k)
      aim_lower(ladder::kRoomForCopies, [&](std::int64_t percent) {
        if (attempts_[k].waits) plan(*attempts_[k].trade, *attempts_[k].heads, percent);
        return false;
      });
    sort();
  }

  void pack(Keeper& keeper, std::size_t most) {
    for (Attempt& attempt : attempts_) {
      bool surely_worse = false;
      aim_lower(ladder::kJoint, [&](std::int64_t less) {
        surely_worse = most == 0 || keeper.within(attempt.seconds * enough::kSurelyWorse);
        if (surely_worse) return true;
        --most;
        std::optional<Draft> draft =
            less == 0 ? std::move(attempt.draft) : draft_of(*attempt.trade, *attempt.heads, attempt.percent - less);
        if (!draft) return true;
        bool fits = false;
        keeper.consider("joint", [&] {
          PlanResult result = finish_quickly(step_, std::move(*draft), cost_, context_);
          fits = result.plan || result.short_of != Tier::device;
          return result;
        });
        return fits;
      });
      if (surely_worse) return;
    }
  }

 private:
  static constexpr std::size_t kRefined = 8;

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
    return plan_jointly(facts_, cost_, context_, percent_of(*context_.memory[Tier::device], percent), trade, heads);
  }

  Outcome plan(const Trade& trade, const std::vector<bool>& heads, std::int64_t percent) {
    std::optional<Draft> draft = draft_of(trade, heads, percent);
    if (!draft) return Outcome::nothing;
    double computing = 0;
    for (const Op& op : draft->ops)
      if (op.is_run()) computing += fastest_seconds(step_, cost_, op.run().task);
    const double seconds = forecast_seconds(step_, cost_, *context_.memory[Tier::device], *draft);
    for (const Attempt& other : attempts_)
      if (other.seconds == seconds && other.draft.ops.size() == draft->ops.size() && other.percent == percent)
        return other.trade == &trade ? Outcome::as_with_other_heads : Outcome::known;
    attempts_.push_back(
        {&trade, &heads, percent, std::move(*draft), seconds, seconds > computing * enough::kHardlyWaits});
    return Outcome::added;
  }

  void sort() {
    std::stable_sort(attempts_.begin(), attempts_.end(),
                     [](const Attempt& a, const Attempt& b) { return a.seconds < b.seconds; });
  }

  const Step& step_;
  const StepFacts& facts_;
  const CostModel& cost_;
  const PlanningContext& context_;
  std::vector<Attempt> attempts_;
};

}  // namespace

bool is_large(const Step& step) { return step.ordered_tasks > kLargeStep; }

void consider_joint_plans(const Step& step, const StepFacts& facts, const CostModel& cost,
                          const PlanningContext& context, const std::vector<std::vector<bool>>& heads, Keeper& keeper) {
  const bool large = is_large(step);
  JointAttempts attempts(step, facts, cost, context);
  attempts.plan(std::span(kTrades).first(large ? kTradesOfLargeSteps : kTrades.size()), heads);
  attempts.pack(keeper, large ? kPackedOfLargeSteps : step.ordered_tasks < kSmallStep ? kPackedOfSmallSteps : kPacked);
}

}  // namespace tide
