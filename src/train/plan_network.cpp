#include "train/plan_network.h"

#include "base/size_text.h"

namespace tide {

PlanResult plan_network(const NetworkPtr& network, const StepVariant& variant, const SessionOptions& options,
                        const Target* target) {
  const std::unique_ptr<Target> own = target == nullptr ? make_target(options) : nullptr;
  const Target& used = own ? *own : *target;
  const BuildStep build = [&](const StepChoice& choice) {
    return used.build(network, step_options(variant, options), choice);
  };
  return plan_on(used, find_policy(options.policy), build, options.planner);
}

std::string shortage_text(const PlanResult& result) {
  const Bytes needed = result.floor[result.short_of];
  return fmt::format("it needs {} bytes ({}) of {} memory{}", needed.count(), format_size(needed),
                     tier_name(result.short_of),
                     result.bottleneck_task.empty() ? "" : fmt::format(", at {}", result.bottleneck_task));
}

}  // namespace tide
