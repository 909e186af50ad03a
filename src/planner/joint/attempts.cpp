#include "planner/joint/attempts.h"

#include <algorithm>
#include <array>

#include "planner/finish/finish.h"
#include "planner/joint/forecast.h"
#include "planner/search/enough.h"

namespace tide {
namespace {

// The first two are tried on steps of any size, the next on all but large ones, the last on small ones.
using First = Trade::First;
constexpr std::array<Trade, 14> kTrades{{{0.8, 0.05, First::dearest},
                                         {0, 0},
                                         {0.8, 0.05},
                                         {0.95, 0},
                                         {0.95, 0, First::dearest},
                                         {0.4, 0, First::longest, true},
                                         {0.8, 0.05, First::dearest, true},
                                         {0.1, 0},
                                         {0.2, 0},
                                         {0.4, 0},
                                         {0.6, 0},
                                         {0.4, 0.05, First::dearest},
                                         {0.2, 0, First::dearest},
                                         {0, 0, First::longest, true}}};
constexpr std::array<Trade, 3> kTradesOfLongSegments{{{0.8, 0.05, First::dearest}, {0.8, 0.05}, {0.95, 0}}};

struct Effort {
  std::uint32_t tasks;  // of steps with at most so many
  std::size_t trades;
  int packed;  // drafts
};
constexpr std::array<Effort, 3> kEfforts{{{120, kTrades.size(), 12}, {4000, 7, 8}, {UINT32_MAX, 2, 2}}};

const Effort& effort_of(const Step& step) {
  return *std::ranges::find_if(kEfforts, [&](const Effort& row) { return step.ordered_tasks <= row.tasks; });
}

}  // namespace

bool is_large(const Step& step) { return &effort_of(step) == &kEfforts.back(); }

JointDrafts::JointDrafts(const StepFacts& facts, const CostModel& cost, const PlanningContext& context,
                         const std::vector<std::vector<bool>>& heads) {
  for (const Trade& trade : std::span(kTrades).first(effort_of(facts.step()).trades))
    chains_.emplace_back(facts, cost, context, trade, heads.front());
  for (const std::vector<bool>& longer : std::span(heads).subspan(1))
    for (const Trade& trade : kTradesOfLongSegments) chains_.emplace_back(facts, cost, context, trade, longer);
}

std::span<const Draft> JointDrafts::down_to(Bytes limit) {
  std::vector<Draft>& made = made_[limit];
  for (JointChain& chain : chains_)
    if (std::optional<Draft> draft = chain.down_to(limit)) made.push_back(*std::move(draft));
  return made;
}

std::span<const Draft> JointDrafts::at(Bytes limit) const {
  const auto it = made_.find(limit);
  return it == made_.end() ? std::span<const Draft>() : it->second;
}

void consider_joint_plans(const Step& step, std::span<const std::span<const Draft>> drafts, const CostModel& cost,
                          const PlanningContext& context, double seconds_to_beat, Keeper& keeper) {
  struct Attempt {
    const Draft* draft;
    double at_least;
    double forecast = 0;
  };
  std::vector<Attempt> attempts;
  for (const std::span<const Draft> list : drafts)
    for (const Draft& draft : list)
      attempts.push_back({&draft, seconds_at_least(step, cost, draft, context.memory[Tier::device])});
  if (attempts.empty()) return;
  const double least = std::ranges::min(attempts, {}, &Attempt::at_least).at_least;
  if (least >= keeper.to_beat(seconds_to_beat)) return;
  std::erase_if(attempts, [&](const Attempt& each) { return each.at_least > least * enough::kSurelyWorse; });
  for (Attempt& each : attempts)
    each.forecast = forecast_seconds(step, cost, *context.memory[Tier::device], *each.draft);
  std::ranges::stable_sort(attempts, {}, &Attempt::forecast);
  int packed = 0;
  for (const Attempt& each : attempts) {
    if (packed++ == effort_of(step).packed || each.forecast > attempts.front().forecast * enough::kForecastWorse)
      return;
    if (each.at_least >= keeper.to_beat(seconds_to_beat)) continue;
    keeper.consider("joint", [&] { return finish_quickly(step, *each.draft, cost, context); });
  }
}

}  // namespace tide
