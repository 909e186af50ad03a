#include "plan/plan.h"

#include <algorithm>
#include <array>

#include "network/kind.h"

namespace tide {

Op copy_op(const Copy& copy) {
  const std::optional<Route> route = find_route(copy.from, copy.to);
  if (!route) throw Error("nothing goes from {} memory to {} memory", tier_name(copy.from), tier_name(copy.to));
  return {.what = copy, .lane = row_of(*route).lane};
}

std::string_view numerics_name(Numerics numerics) {
  constexpr std::array<std::string_view, 3> kNames{"identical", "reordered", "changed"};
  return kNames[static_cast<std::size_t>(numerics)];
}

Numerics numerics_from_name(std::string_view name) {
  for (const Numerics numerics : {Numerics::identical, Numerics::reordered, Numerics::changed})
    if (name == numerics_name(numerics)) return numerics;
  throw Error("unknown numerics '{}'; they are identical, reordered and changed", name);
}

Numerics numerics_of(const Plan& plan) {
  const Step& step = *plan.phases.front().step;
  if (plan.phases.size() == 1)
    return step.options.sub_batch > 0 && step.options.ranks.parts == 0 ? Numerics::reordered : Numerics::identical;
  // Statistics of a batch are not those of its parts.
  return mixes_samples(step.layer_kinds) ? Numerics::changed : Numerics::reordered;
}

namespace {

std::string ranks_text(const RankOptions& ranks) {
  std::string text;
  if (ranks.count > 1) text = fmt::format(" ranks={} bucket={}", ranks.count, ranks.bucket.count());
  if (ranks.parts > 0) text += fmt::format(" parts={}", ranks.parts);
  if (ranks.shard != Shard::none)
    text += fmt::format(" shard={}/{}", shard_name(ranks.shard), ranks.least_to_shard.count());
  return text;
}

}  // namespace

std::string fingerprint_of(const Step& step) {
  const OptimizerOptions& o = step.options.optimizer;
  return fmt::format("{}#{:016x} batch={} rules={} {} optimizer={}/{}/{}/{}/{}/{}/{}{}{}{} backend={}", step.model,
                     step.network ? step.network->fingerprint() : 0, step.options.batch, rules_name(step.options.rules),
                     step.options.training ? "training" : "inference", static_cast<int>(o.kind), o.momentum, o.beta1,
                     o.beta2, o.epsilon, o.weight_decay, o.clip_norm, step.options.fuse ? " fused" : "",
                     step.options.activations == DataType::bf16 ? " bf16" : "", ranks_text(step.options.ranks),
                     step.backend);
}

}  // namespace tide
