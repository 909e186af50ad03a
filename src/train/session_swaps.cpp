// What each of several ranks swaps, agreed on before they plan, and when it comes back, corrected by measured steps.
#include <algorithm>

#include "planner/policy.h"
#include "planner/ranks/corrections.h"
#include "planner/search/search.h"
#include "train/persistent_places.h"
#include "train/rank_swaps.h"
#include "train/session.h"

namespace tide {

void Session::stagger(const std::vector<StepVariant>& variants) {
  const StepVariant lead = lead_of(variants);
  if (ranks().stagger == Stagger::none || options_.plan || !lead.training) return;
  const BuildStep build_lead = [&](const StepChoice& choice) { return build(lead, choice); };
  const Reserved reserved = reserve(*target_, build_lead, options_.planner);
  target_->cover(build_lead, reserved.planner.memory[Tier::device]);
  const RankLinks links = find_links(ranks(), backend(), cost());
  const bool on_devices = backend().name() == "cuda" && ranks().road != SumRoad::host;
  const std::optional<RankWay> way = agree_on_swaps({.ranks = ranks(),
                                                     .links = links,
                                                     .policy = find_policy(options_.policy),
                                                     .build = build_lead,
                                                     .cost = cost(),
                                                     .options = reserved.planner,
                                                     .road = on_devices ? ReduceRoad::ring : ReduceRoad::cpu});
  if (!way) return;  // planning says what is too small
  swaps_ = way->name;
  options_.policy = way->policy;
  options_.planner = options_at(*way, options_.planner, links.place_of(ranks().rank()));
  if (way->link_share < 1) link_share_.emplace(cost(), way->link_share);
}

void Session::start_tuning() {
  triggers_ = lead_context_.policy.get<TriggerOptions>();
  if (!triggers_.early || triggers_.early->empty() || options_.plan || !lead_.training) return;
  const auto longest = [this](double own) {
    double most = own;
    if (ranks().count() > 1)
      for (const std::string& text : ranks().communicator->gather(fmt::format("{}", own)))
        most = std::max(most, std::stod(text));
    return most;
  };
  tuning_ = std::make_unique<TriggerTuning>(TuningCalls{.longest = longest,
                                                        .correct = [this] { return correct_triggers(); },
                                                        .go_back =
                                                            [this] {
                                                              triggers_ = triggers_before_;
                                                              run_lead_with(std::move(plan_before_));
                                                            },
                                                        .finish =
                                                            [this] {
                                                              // From here on nobody looks at times.
                                                              if (!options_.executor.record)
                                                                run_lead_with(find(lead_).plan);
                                                            }});
}

// Parameters stay where they are, and the plan within the memory that there is.
bool Session::correct_triggers() {
  const Planned& lead = find(lead_);
  const PlanTriggers replan = [&](const TriggerOptions& triggers) {
    PlanningContext context = lead_context_;
    context.policy.set<TriggerOptions>() = triggers;
    context.memory[Tier::device] = input_ahead_ ? *input_ahead_ : arena_bytes();
    context.memory[Tier::host] = host_bytes();
    if (context.memory[Tier::disk]) context.memory[Tier::disk] = disk_bytes();
    if (context.memory[Tier::lent]) context.memory[Tier::lent] = borrowed_bytes();
    if (context.memory[Tier::peer]) context.memory[Tier::peer] = borrowed_device_bytes();
    const CostModel& times = link_share_ ? static_cast<const CostModel&>(*link_share_) : cost();
    PlanResult result = search_plan(
        find_policy(options_.policy), [&](const StepChoice& choice) { return build(lead_, choice); }, times, context);
    if (result.plan && persistent_places(*result.plan) != persistent_places(lead.plan)) result.plan.reset();
    return result;
  };
  const TriggerOptions wanted = corrected_triggers(lead.plan, lead.executor->timeline(), triggers_);
  std::optional<Plan> replanned;
  TriggersFound found;
  if (wanted.early != triggers_.early) {
    found = apply_corrections(replan, triggers_, wanted);
    replanned = std::move(found.result.plan);
  }
  const std::string answer = replanned ? "changed" : "";
  const std::vector<std::string> answers =
      ranks().count() > 1 ? ranks().communicator->gather(answer) : std::vector{answer};
  if (std::ranges::all_of(answers, &std::string::empty)) return false;
  plan_before_ = lead.plan;
  triggers_before_ = triggers_;
  if (replanned) triggers_ = found.triggers;
  run_lead_with(replanned ? *std::move(replanned) : lead.plan);
  return true;
}

void Session::run_lead_with(Plan plan) {
  Planned& lead = find(lead_);
  lead.executor.reset();
  lead.plan = std::move(plan);
  lead.loaded_data = nullptr;
  lead.executor = executor_of(lead_, lead.plan);
}

}  // namespace tide
