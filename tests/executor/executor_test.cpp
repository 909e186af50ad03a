// The executor's contract: several step variants over one arena, plans that do not fit,
// values between steps.
#include "executor/executor.h"

#include <gtest/gtest.h>

#include <functional>

#include "executor/job.h"
#include "network/builder.h"
#include "planner/policy.h"
#include "support/error_of.h"

namespace tide {
namespace {

NetworkPtr small_network() {
  Builder net("small");
  Value x = net.input({1, 2, 6, 6});
  x = net.relu(
      net.batch_norm(net.convolution(x, {.channels = 5, .window = Window::square(3, 1, 1)}, "conv"), {}, "norm"));
  x = net.dropout(net.fully_connected(x, {.channels = 8}, "fc1"));
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 3}, "fc2"));
  return test::shared_network(std::move(net).build());
}

StepOptions evaluation_step(std::int64_t batch) {
  StepOptions options = test::training_step(batch);
  options.training = false;
  return options;
}

TEST(Executor, TrainingAndEvaluationShareAnArena) {
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  const NetworkPtr network = small_network();
  const test::ParameterValues values = test::formula_values(*network);
  for (const Policy& policy : policies()) {
    // Alone, for comparison.
    test::Job alone(test::plan_for(network, *backend, policy.name, test::training_step(5)), *backend);
    alone.set_state(values);
    const double alone_loss = alone.run_steps(3);

    Plan large = test::plan_for(network, *backend, policy.name, test::training_step(5));
    Plan small = test::plan_for(network, *backend, policy.name, evaluation_step(2));
    Arena arena(*backend, summarize(large).peak[Tier::device]);
    test::Job train(std::move(large), *backend, arena);
    test::Job evaluate(std::move(small), *backend, arena);
    train.set_state(values);
    double loss = 0;
    for (std::uint64_t i = 0; i < 3; ++i) {
      loss = train.run(i);
      // Evaluation sees the new weights, changes nothing, and gives the same answer twice.
      const std::uint64_t before = train.state_hash();
      const double first = evaluate.run(7), again = evaluate.run(7);
      EXPECT_EQ(first, again) << policy.name;
      EXPECT_TRUE(std::isfinite(first)) << policy.name;
      EXPECT_EQ(train.state_hash(), before) << policy.name;
      EXPECT_EQ(evaluate.state_hash(), before) << policy.name;
    }
    EXPECT_EQ(loss, alone_loss) << policy.name;
    EXPECT_EQ(train.state_hash(), alone.state_hash()) << policy.name;
    EXPECT_LE(evaluate.executor().high_water(), train.executor().high_water());
  }
}

TEST(Executor, RefusesAPlanThatDoesNotFitTheArena) {
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  for (const Policy& policy : policies()) {
    const Plan plan = test::plan_for(small_network(), *backend, policy.name, test::training_step(4));
    const Bytes peak = summarize(plan).peak[Tier::device];
    Arena exact(*backend, peak), short_of(*backend, peak - Bytes(1));
    EXPECT_NO_THROW(static_cast<void>(make_executor(plan, *backend, exact)));
    const std::string error = test::error_of([&] { static_cast<void>(make_executor(plan, *backend, short_of)); });
    EXPECT_EQ(error, fmt::format("the plan needs {} bytes of device memory, the arena has {}", peak.count(),
                                 peak.count() - 1));
  }
}

// Under `baseline` and `sharing` the workspace stands behind all tensors: it counts too.
TEST(Executor, RefusesAWorkspaceThatDoesNotFitTheArena) {
  const std::unique_ptr<Backend> backend = make_backend("null");
  Step step = build_step(small_network(), test::training_step(4));
  backend->annotate(step);
  step.algorithm_sets = {{Algorithm{"default", Bytes(1000)}}};
  const Plan plan = *make_plan(find_policy("baseline"), std::move(step), RooflineModel(generic_cpu()), {}).plan;
  const Bytes peak = summarize(plan).peak[Tier::device];
  Arena short_of(*backend, peak - Bytes(kAlignment));
  EXPECT_NE(test::error_of([&] {
              static_cast<void>(make_executor(plan, *backend, short_of));
            }).find("bytes of device memory"),
            std::string::npos);
}

TEST(Executor, RefusesWhatItCannotRun) {
  const std::unique_ptr<Backend> backend = make_backend("null");
  Plan plan = test::plan_for(small_network(), *backend, "liveness", test::training_step(4));
  Arena arena(*backend, summarize(plan).peak[Tier::device]);
  Plan spilled = plan;
  spilled.phases.front().residencies.front().tier = Tier::disk;
  EXPECT_NE(test::error_of([&] { static_cast<void>(make_executor(spilled, *backend, arena)); }).find("disk"),
            std::string::npos);
}

TEST(Executor, KeepsValuesBetweenSteps) {
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  test::Job job(test::plan_for(small_network(), *backend, "liveness", test::training_step(4)), *backend);
  const test::ParameterValues values = test::formula_values(*job.step().network);
  job.set_state(values);
  for (const Storage& storage : job.step().storages) {
    if (!storage.persistent || storage.tensor_class != TensorClass::parameter) continue;
    EXPECT_EQ(job.read(storage.entry), values[job.step().tensor(storage.entry).parameter.index()]);
  }
  // An activation has no memory of its own between steps.
  for (std::size_t t = 0; t < job.step().tensors.size(); ++t) {
    if (job.step().tensors[t].tensor_class != TensorClass::activation) continue;
    const std::string error = test::error_of([&] { static_cast<void>(job.read(TensorId(t))); });
    EXPECT_NE(error.find("no memory between steps"), std::string::npos) << error;
  }
}

TEST(Executor, RecordsATimelineOnlyWhenAsked) {
  const std::unique_ptr<Backend> backend = make_backend("null");
  const Plan plan = test::plan_for(small_network(), *backend, "liveness", test::training_step(4));
  for (const bool record : {false, true}) {
    test::Job job(plan, *backend, {.guard = false, .record = record});
    job.run(0);
    const Timeline& timeline = job.executor().timeline();
    ASSERT_EQ(timeline.spans.size(), record ? plan.phases.front().ops.size() : 0U);
    double now = 0;
    for (const Span& span : timeline.spans) {
      EXPECT_LE(now, span.start);
      EXPECT_LE(span.start, span.end);
      now = span.end;
    }
    EXPECT_LE(now, timeline.seconds);
  }
}

}  // namespace
}  // namespace tide
