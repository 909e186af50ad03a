#include "train/plan_network.h"

#include "base/size_text.h"

namespace tide {

PlanResult plan_network(const NetworkPtr& network, const StepVariant& variant, const SessionOptions& options,
                        const Target* target) {
  std::unique_ptr<Target> own;
  if (target == nullptr) {
    own = make_target(options);
    target = own.get();
  }
  const BuildStep build = [&](const StepChoice& choice) {
    return target->build(network, step_options(variant, options), choice);
  };
  return plan_on(*target, find_policy(options.policy), build, options.planner);
}

std::string shortage_text(const PlanResult& result) {
  const Bytes needed = result.floor[result.short_of];
  return fmt::format("it needs {} bytes ({}) of {} memory{}", needed.count(), format_size(needed),
                     tier_name(result.short_of),
                     result.bottleneck_task.empty() ? "" : fmt::format(", at {}", result.bottleneck_task));
}

}  // namespace tide
