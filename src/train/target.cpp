#include "train/target.h"

#include <algorithm>

#include "cost/device_model.h"
#include "executor/phase_executor.h"
#include "planner/draft/in_place.h"
#include "planner/policy.h"
#include "planner/search/search.h"
#include "step/build.h"

namespace tide {

Target::Target(std::unique_ptr<Backend> backend, const CostRequest& request)
    : backend_(std::move(backend)), choice_(choose_cost(*backend_, request)) {}

Target::Target(std::unique_ptr<Backend> backend, CostChoice choice)
    : backend_(std::move(backend)), choice_(std::move(choice)) {}

Target::Target(const DeviceSheet& sheet, double link_bytes_per_second)
    : sheet_(&sheet), choice_(choose_cost(sheet, link_bytes_per_second)) {}

std::string Target::source() const {
  const auto* const profile = dynamic_cast<const ProfileModel*>(choice_.model.get());
  if (profile == nullptr || profile->missing() == 0 || !choice_.warning.empty()) return choice_.source;
  return choice_.source + ", which lacks some of these tasks: those are modelled";
}

Step Target::build(const NetworkPtr& network, StepOptions options, const StepChoice& choice) const {
  choice.apply_to(options);
  Step step = build_step(network, options);
  if (sheet_ != nullptr)
    annotate_for(step, sheet_->rates());
  else
    backend_->annotate(step);
  if (choice.samples > 0) cover(step);
  return step;
}

void Target::cover(const Step& step) const {
  if (choice_.measured) choice_.measured->cover(merge_in_place(step));
}

void Target::cover(const BuildStep& build, const std::optional<Bytes>& memory) const {
  if (!choice_.measured) return;
  for (const Bytes limit : fuse_limits(memory, build({}).options.activations)) cover(build({limit}));
}

Reserved reserve(const Target& target, const BuildStep& build, const PlannerOptions& options) {
  // Sending a batch takes a few percent of a step, so the room for it may cost as much of the budget.
  constexpr std::int64_t kSmallPart = 50;
  Reserved reserved{options};
  const Backend* const backend = target.backend();
  if (backend == nullptr || backend->host_addressable()) return reserved;
  const Step step = build({});
  // Rounds are recorded apart from each other: the first, the others, a smaller last one.
  const std::int64_t recordings = allowed_by(options.batch) == Numerics::identical ? 1 : 3;
  const Bytes recorded =
      (backend->recorded_bytes_per_op() * checked_multiply(recordings, static_cast<std::int64_t>(step.tasks.size())))
          .aligned();
  const Bytes inputs = input_bytes(step);
  std::optional<Bytes>& memory = reserved.planner.memory[Tier::device];
  if (memory && *memory <= recorded) return reserved;  // nothing would be left
  // Rungs are those of the budget that was asked for.
  reserved.planner.reserved = recorded + inputs;
  if (memory) *memory -= recorded;
  reserved.sends_ahead = !memory || inputs.count() <= memory->count() / kSmallPart;
  if (!memory) return reserved;
  if (reserved.sends_ahead)
    *memory -= inputs;
  else  // no more than a larger budget leaves that has room for it
    *memory = std::min(*memory, inputs * (kSmallPart - 1));
  return reserved;
}

PlanResult plan_on(const Target& target, const Policy& policy, const BuildStep& build, const PlannerOptions& options) {
  const Reserved reserved = reserve(target, build, options);
  target.cover(build, reserved.planner.memory[Tier::device]);
  PlanResult result = search_plan(policy, build, target.cost(), reserved.planner);
  // So close to the floor there is nothing to reserve.
  if (!result.plan && reserved.planner.memory[Tier::device] != options.memory[Tier::device])
    result = search_plan(policy, build, target.cost(), options);
  return result;
}

}  // namespace tide
