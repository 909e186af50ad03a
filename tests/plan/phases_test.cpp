// The checker against plans of several rounds, damaged where only such plans can be: in what one
// phase leaves to the next.
#include <gtest/gtest.h>

#include <functional>

#include "plan/checker.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"
#include "support/random_network.h"

namespace tide {
namespace {

Plan rounds_of(std::uint32_t seed, std::int64_t batch, std::int64_t sub_batch) {
  const NetworkPtr network = testing_support::random_network(seed);
  StepOptions options;
  options.batch = batch;
  options.optimizer.kind = OptimizerKind::adam;
  options.optimizer.clip_norm = seed % 2 == 0 ? 0.5 : 0;
  PlanningContext planner;
  planner.batch = SubBatches{.allowed = Numerics::changed, .samples = sub_batch};
  planner.cut = [&](std::int64_t samples, Part part) {
    StepOptions piece = options;
    piece.batch = samples;
    piece.part = part;
    return build_step(network, piece);
  };
  return *make_plan(find_policy("liveness"), build_step(network, options), RooflineModel(generic_cpu()), planner).plan;
}

using Kinds = std::vector<FindingKind>;
Kinds kinds_of(const Plan& plan) {
  Kinds kinds;
  for (const Finding& finding : check(plan)) kinds.push_back(finding.kind);
  return kinds;
}

Step& open(Phase& phase) {
  auto copy = std::make_shared<Step>(*phase.step);
  phase.step = copy;
  return *copy;
}

TEST(Phases, OfACutBatchAreValid) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Plan plan = rounds_of(seed, 7, 3);  // 3, 3, 1
    ASSERT_EQ(plan.phases.size(), 4U);
    EXPECT_TRUE(check(plan).empty()) << seed;
    EXPECT_EQ(batch_of(plan), 7);
  }
}

// Each does one thing that a phase alone cannot know to be wrong.
TEST(Phases, EveryDamageIsFound) {
  struct BadPhases {
    const char* what;
    FindingKind kind;
    std::function<void(Plan&)> apply;
  };
  const std::vector<BadPhases> damages{
      {"a whole step is repeated", FindingKind::malformed, [](Plan& p) { p.phases.back().repeat = 2; }},
      {"the first round comes twice", FindingKind::malformed, [](Plan& p) { p.phases[1] = p.phases[0]; }},
      {"the update is missing", FindingKind::malformed, [](Plan& p) { p.phases.pop_back(); }},
      {"a later round is missing", FindingKind::malformed, [](Plan& p) { p.phases.erase(p.phases.begin() + 1); }},
      {"a round too many", FindingKind::malformed, [](Plan& p) { p.phases[1].repeat = 2; }},
      {"rounds beyond counting", FindingKind::malformed, [](Plan& p) { p.phases[1].repeat = INT32_MAX; }},
      {"a round of nothing", FindingKind::malformed, [](Plan& p) { open(p.phases[1]).options.batch = 0; }},
      {"numbers that are not what it says", FindingKind::malformed, [](Plan& p) { p.numerics = Numerics::identical; }},
      {"a gradient that starts anew", FindingKind::wrong_value,
       [](Plan& p) {
         Step& step = open(p.phases[1]);
         for (Storage& storage : step.storages)
           if (storage.tensor_class == TensorClass::parameter_gradient) storage.entry = TensorId();
         for (Operand& operand : step.operands)
           if (operand.access == Access::accumulate) operand.access = Access::write;
       }},
      {"parameters and gradients somewhere else", FindingKind::bad_exit,
       [](Plan& p) {
         for (Residency& r : p.phases[1].residencies) r.address += Bytes(kAlignment);
         for (Op& op : p.phases[1].ops) op.run().workspace += Bytes(kAlignment);
       }},
      {"parameters of another shape", FindingKind::bad_exit,
       [](Plan& p) {
         Step& step = open(p.phases[1]);
         for (Tensor& tensor : step.tensors)
           if (tensor.tensor_class == TensorClass::parameter)
             tensor.shape = tensor.shape.with_extent(0, tensor.shape.extent(0) + 1);
       }},
  };
  for (const BadPhases& damage : damages) {
    Plan plan = rounds_of(1, 7, 3);
    damage.apply(plan);
    const Kinds kinds = kinds_of(plan);
    EXPECT_NE(std::find(kinds.begin(), kinds.end(), damage.kind), kinds.end()) << damage.what;
  }
}

}  // namespace
}  // namespace tide
