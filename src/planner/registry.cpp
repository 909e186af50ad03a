#include <array>
#include <chrono>

#include "plan/checker.h"
#include "planner/policies.h"
#include "planner/resting.h"

namespace tide {
namespace {

constexpr std::array<Policy, 14> kPolicies{{
    {"baseline", "every tensor has memory of its own for the whole step", plan_baseline},
    {"inplace", "baseline, but results overwrite operands that nobody needs any more", plan_inplace},
    {"sharing", "inplace, and blocks are recycled among tensors (sublinear paper, section 3)", plan_sharing},
    {"liveness", "memory is held from first write to last read, at addresses packed by lifetime", plan_liveness},
    {"offload", "liveness, and outputs of convolutions leave the device between the passes", plan_offload, true},
    {"superneurons", "offload, cache, recomputation and workspaces, as far as memory is short", plan_superneurons,
     true},
    {"vdnn-conv", "inputs of convolutions leave and come back, each copy in step with one layer (vDNN)",
     plan_vdnn_conv},
    {"vdnn-all", "the same for the inputs of all layers", plan_vdnn_all},
    {"vdnn+", "whichever of the two is faster, in sub-batches as large as moDNN's", plan_vdnn_plus},
    {"modnn", "neighbours leave where that delays least, and come back just in time; batches are cut to fit (moDNN)",
     plan_modnn},
    {"drop-cheap", "cheap layers are dropped and run again, convolutions and products are kept", plan_drop_cheap},
    {"sublinear", "segments are run again from what is kept between them: O(sqrt n) memory", plan_sublinear},
    {"recursive", "segments within segments: O(log n) memory for O(n log n) time", plan_recursive},
    {"auto", "the fastest of all: each tensor kept, moved or recomputed, whichever costs least", plan_auto, true},
}};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::span<const Policy> policies() { return kPolicies; }

const Policy& find_policy(std::string_view name) {
  std::string known;
  for (const Policy& policy : kPolicies) {
    if (policy.name == name) return policy;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", policy.name);
  }
  throw Error("unknown policy '{}'; the policies are {}", name, known);
}

PlanResult make_plan(const Policy& policy, Step step, const CostModel& cost, const PlannerOptions& options) {
  const std::string fingerprint = fingerprint_of(step);
  const auto start = std::chrono::steady_clock::now();
  PlanResult result = plan_with_parameters(policy, std::move(step), cost, options);
  result.plan_seconds = seconds_since(start);
  if (!result.plan) return result;
  result.plan->policy = policy.name;
  result.plan->numerics = numerics_of(*result.plan);
  result.plan->fingerprint = fingerprint;
  result.plan->memory = options.memory;
  result.plan->host_memory = options.host_memory;
  result.plan->disk_memory = options.disk_memory;
  const auto check_start = std::chrono::steady_clock::now();
  require_valid(*result.plan);
  result.check_seconds = seconds_since(check_start);
  return result;
}

}  // namespace tide
