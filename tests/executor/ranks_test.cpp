// Many ranks as threads of one process, on a device that computes nothing: plans that differ from rank to rank agree on
// what the ranks do together, and following them ends.
#include <gtest/gtest.h>

#include "cluster/threads.h"
#include "executor/executor.h"
#include "executor/host_collectives.h"
#include "plan/check_together.h"
#include "plan/summary.h"
#include "planner/policy.h"
#include "planner/search/search.h"
#include "step/build.h"
#include "support/on_device.h"
#include "support/random_network.h"

namespace tide {
namespace {

// As another rank might plan it: by its own policy, within its own budget.
Plan plan_of_rank(const NetworkPtr& network, StepOptions options, std::size_t rank, const Backend& backend) {
  options.ranks.late_updates = rank % 2 == 0;
  options.fuse = options.ranks.parts == 0 && rank % 3 == 0;
  Step step = build_step(network, options);
  backend.annotate(step);
  const RooflineModel cost(generic_cpu());
  std::vector<const Policy*> others;
  for (const Policy& policy : policies())
    if (!policy.tries_all_others) others.push_back(&policy);
  const Policy& policy = *others[rank % others.size()];
  PlanningContext context = test::on_device();
  const PlanResult whole = make_plan(policy, step, cost, context);
  context.memory[Tier::device] = whole.floor[Tier::device] + Bytes(static_cast<std::int64_t>(rank % 4) * 256);
  PlanResult result = make_plan(policy, step, cost, context);
  return result.plan ? *std::move(result.plan) : *whole.plan;
}

void run_ranks(int count, std::uint32_t seed) {
  const NetworkPtr network = testing_support::random_network(seed);
  StepOptions options{.batch = 2};
  options.ranks = {.count = count, .bucket = Bytes(300)};
  options.ranks.shard = static_cast<Shard>(seed / 2 % kShards);
  options.ranks.least_to_shard = Bytes(100);
  if (seed % 2 == 1) options.ranks.parts = 2 * count;
  const std::unique_ptr<Backend> planner = make_backend("null");
  std::vector<Plan> plans;
  std::vector<const Plan*> pointers;
  for (std::size_t r = 0; r < static_cast<std::size_t>(count); ++r)
    plans.push_back(plan_of_rank(network, options, r, *planner));
  for (const Plan& plan : plans) pointers.push_back(&plan);
  const std::vector<Finding> findings = check_together(pointers);
  ASSERT_TRUE(findings.empty()) << "seed " << seed << ": " << findings[0].text;
  std::atomic<int> through{0};
  on_thread_ranks(count, [&](Communicator& communicator) {
    const std::unique_ptr<Backend> backend = make_backend("null");
    const Plan& plan = plans[static_cast<std::size_t>(communicator.rank())];
    const std::unique_ptr<Collectives> collectives = make_host_collectives(communicator, *backend);
    Arena arena(*backend, summarize(plan).peak[Tier::device]);
    ExecutorOptions executor_options;
    executor_options.guard = false;
    executor_options.collectives = collectives.get();
    const std::unique_ptr<Executor> executor = make_executor(plan, *backend, Tiers(arena), executor_options);
    for (std::uint64_t s = 0; s < 3; ++s) executor->run({.step = s, .global_batch = 2 * count});
    ++through;
  });
  EXPECT_EQ(through, count);
}

TEST(ManyRanks, OfRandomNetworksAgreeAndEnd) {
  for (std::uint32_t seed = 0; seed < 24; ++seed) run_ranks(2 + static_cast<int>(seed % 7), seed);
}

TEST(ManyRanks, MayBeSixtyFour) {
  for (const std::uint32_t seed : {3U, 10U}) run_ranks(64, seed);
}

}  // namespace
}  // namespace tide
