// Room for the next batch on a device that works by itself: as much as the plan's own inputs take,
// however the batch is cut, and never beyond the budget.
#include "support/recording_backend.h"
#include "train/small_session.h"

namespace tide::test {
namespace {

constexpr std::int64_t kBatch = 7;

SessionOptions options_for(std::int64_t sub_batch, bool exact) {
  SessionOptions options = plain_session();
  options.backend = "reference";
  options.optimizer.kind = OptimizerKind::sgd;
  if (sub_batch > 0)
    options.planner.batch = SubBatches{
        .allowed = exact ? Numerics::reordered : Numerics::changed, .exact_batch_norm = exact, .samples = sub_batch};
  return options;
}

std::unique_ptr<Target> recording_target() {
  return std::make_unique<Target>(std::make_unique<RecordingBackend>(1), CostRequest{});
}

SessionPtr open_recorded(const SessionOptions& options, const std::vector<StepVariant>& variants = {{kBatch, true}}) {
  auto opened = Session::open(small_network(), variants, options, recording_target());
  return std::move(std::get<SessionPtr>(opened));
}

// Each step is told what comes next, as a training loop does.
std::uint64_t train(Session& session, int steps) {
  const DatasetPtr data = digits();
  const auto batch = [](int index) {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(kBatch));
    std::iota(samples.begin(), samples.end(), index * kBatch);
    return samples;
  };
  for (int i = 0; i < steps; ++i)
    EXPECT_TRUE(std::isfinite(session.run({kBatch, true}, *data, batch(i), 0.05, batch(i + 1)).loss));
  return session.weights_hash();
}

// Sub-batches between exact batch norms are inputs of their own, which together take more than the
// whole batch: each begins at an aligned address.
TEST(InputsAhead, HaveRoomHoweverTheBatchIsCut) {
  for (const bool exact : {false, true})
    for (const std::int64_t sub_batch : {0, 1, 2, 3, 6}) {
      SCOPED_TRACE(sub_batch);
      SCOPED_TRACE(exact ? "exact" : "plain");
      const SessionOptions options = options_for(sub_batch, exact);
      const SessionPtr recorded = open_recorded(options);
      EXPECT_TRUE(recorded->executor({kBatch, true}).is_recorded());
      EXPECT_EQ(train(*recorded, 3), train(*open_session(small_network(), {{kBatch, true}}, options), 3));
    }
}

// The variant that leads is the largest, wherever it stands in the list.
TEST(InputsAhead, HaveRoomForTheLargestVariant) {
  const SessionOptions options = options_for(0, false);
  const SessionPtr small_first = open_recorded(options, {{3, true}, {kBatch, true}, {2, false}});
  const SessionPtr large_first = open_recorded(options, {{kBatch, true}, {3, true}, {2, false}});
  EXPECT_EQ(small_first->arena_bytes(), large_first->arena_bytes());
  EXPECT_EQ(train(*small_first, 3), train(*large_first, 3));
}

// A larger budget leaves no less to the plan, though from some budget on there is room for a batch.
TEST(InputsAhead, LeaveNoLessOfALargerBudget) {
  const std::unique_ptr<Target> target = recording_target();
  const BuildStep build = [&](const StepChoice& choice) {
    return target->build(small_network(), step_options({kBatch, true}, options_for(0, false)), choice);
  };
  Bytes before;
  int ahead = 0, not_ahead = 0;
  for (std::int64_t memory = 1 << 12; memory < 1 << 21; memory += 512) {
    PlannerOptions options;
    options.memory[Tier::device] = Bytes(memory);
    const Reserved reserved = reserve(*target, build, options);
    EXPECT_GE(*reserved.planner.memory[Tier::device], before) << memory;
    before = *reserved.planner.memory[Tier::device];
    ++(reserved.sends_ahead ? ahead : not_ahead);
  }
  EXPECT_GT(ahead, 0);
  EXPECT_GT(not_ahead, 0);
}

TEST(InputsAhead, StayWithinTheBudget) {
  for (const bool exact : {false, true})
    for (const std::int64_t sub_batch : {0, 2, 3}) {
      SCOPED_TRACE(sub_batch);
      SessionOptions options = options_for(sub_batch, exact);
      const Bytes all = open_recorded(options)->arena_bytes();
      for (const Bytes less : {Bytes(), Bytes(256), Bytes(1024), Bytes(4096)}) {
        options.planner.memory[Tier::device] = all - less;
        auto opened = Session::open(small_network(), {{kBatch, true}}, options, recording_target());
        if (std::holds_alternative<PlanResult>(opened)) continue;
        Session& session = *std::get<SessionPtr>(opened);
        EXPECT_LE(session.arena_bytes(), *options.planner.memory[Tier::device]);
        EXPECT_NE(train(session, 2), 0U);
      }
    }
}

}  // namespace
}  // namespace tide::test
