// Taking a profile: everything is measured, once, and planning with it needs no model.
#include "executor/measure.h"

#include <gtest/gtest.h>

#include <set>

#include "executor/faults.h"
#include "executor/job.h"
#include "network/builder.h"
#include "plan/timeline.h"
#include "support/random_network.h"

namespace tide {
namespace {

TEST(Measure, MeasuresEveryDistinctTaskAndLeaksNothing) {
  test::FaultyBackend backend("reference");
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    const Plan plan =
        test::plan_for(testing_support::random_network(seed), backend, "liveness", test::training_step(2));
    const Step& step = *plan.phases.front().step;
    std::set<std::string> signatures;
    for (std::size_t t = 0; t < step.tasks.size(); ++t) signatures.insert(signature_of(step, TaskId(t), 0));
    MeasureOptions options;
    options.runs = 2;
    std::size_t told = 0;
    options.progress = [&](std::size_t done, std::size_t total) {
      EXPECT_EQ(done, told++);
      EXPECT_EQ(total, signatures.size());
    };
    backend.kernels.arm(-1);
    const Profile profile = measure_profile(step, backend, options);
    EXPECT_GE(backend.kernels.calls(), static_cast<std::int64_t>(3 * signatures.size()))
        << "one to warm up and two that count";
    EXPECT_EQ(told, signatures.size());
    EXPECT_EQ(profile.backend, step.backend);
    ASSERT_EQ(profile.task_seconds.size(), signatures.size());
    for (const std::string& signature : signatures) EXPECT_GT(profile.task_seconds.at(signature), 0);
    EXPECT_GT(profile.out.bytes_per_second, 0);
    EXPECT_GT(profile.in.bytes_per_second, 0);
    const ProfileModel model({profile});
    EXPECT_GT(simulate(plan, model).seconds, 0);
    EXPECT_EQ(model.missing(), 0);
  }
  EXPECT_EQ(backend.held_bytes, 0);
}

// Kernels get operands that are safe to run on: valid labels and indices, enough workspace.
TEST(Measure, RunsOnTheCpuBackend) {
  const std::unique_ptr<Backend> backend = test::cpu_backend();
  if (!backend) GTEST_SKIP() << "this build has no cpu backend";
  Builder net("pools");
  Value x = net.input({1, 3, 12, 12});
  x = net.max_pool(net.relu(net.batch_norm(net.convolution(x, {.channels = 8, .window = Window::square(3, 2, 1)}))),
                   {.window = Window::square(3, 1, 1)});
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 4}));
  Step step = build_step(test::shared_network(std::move(net).build()), test::training_step(3));
  backend->annotate(step);
  MeasureOptions options;
  options.runs = 3;
  options.link_bytes_per_second = 5e9;
  const Profile profile = measure_profile(step, *backend, options);
  EXPECT_LE(profile.out.bytes_per_second, 5e9 * 1.001) << "the throttle holds, however busy the machine is";
  for (const auto& [signature, seconds] : profile.task_seconds) EXPECT_GT(seconds, 0) << signature;
}

}  // namespace
}  // namespace tide
