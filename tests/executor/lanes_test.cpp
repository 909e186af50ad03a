// Lanes on threads: whatever order they meet in, waits hold and no bit changes.
#include "executor/lanes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "executor/faults.h"
#include "executor/job.h"
#include "plan/checker.h"
#include "support/random_network.h"
#include "support/spill.h"

namespace tide {
namespace {

using testing_support::tier_bytes;
using testing_support::with_offloads;
using testing_support::with_spills;

Plan random_plan(std::uint32_t seed, const Backend& backend) {
  StepOptions options = test::training_step(1 + seed % 3);
  options.optimizer.kind = static_cast<OptimizerKind>(seed % 5);
  return test::plan_for(testing_support::random_network(seed), backend, "liveness", options);
}

// Any store does for another rank's memory.
std::unique_ptr<SpillFile> store_for(const Plan& plan, Tier tier) {
  const Bytes bytes = tier_bytes(plan, tier);
  return bytes.is_zero() ? nullptr : std::make_unique<SpillFile>(std::filesystem::path(), bytes);
}

// Two steps; the loss, and a hash of everything that persists.
std::pair<double, std::uint64_t> loss_and_hash(test::Job& job) {
  job.set_state(test::formula_values(*job.step().network));
  const double loss = job.run_steps(2, 0.1);
  return {loss, job.state_hash()};
}

constexpr ExecutorOptions kFree{.guard = false, .record = true};

// Every op is behind what it waits for and behind the op before it on its lane.
void expect_ordered(const Phase& phase, const Timeline& timeline, std::uint32_t seed) {
  std::array<double, kLanes> free{};
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const Span& span = timeline.spans[i];
    double& lane = free[static_cast<std::size_t>(phase.ops[i].lane)];
    EXPECT_LE(span.start, span.end) << "seed " << seed << ", op " << i;
    EXPECT_LE(lane, span.start) << "seed " << seed << ", op " << i;
    for (const std::int32_t wait : phase.ops[i].waits)
      EXPECT_LE(timeline.spans[static_cast<std::size_t>(wait)].end, span.start) << "seed " << seed << ", op " << i;
    lane = span.end;
    EXPECT_LE(span.end, timeline.seconds);
  }
}

PerRoute<Bytes> planned_copies(const Phase& phase) {
  PerRoute<Bytes> sums;
  for (const Op& op : phase.ops)
    if (op.is_copy()) sums[*find_route(op.copy().from, op.copy().to)] += phase.step->storage(op.copy().storage).bytes;
  return sums;
}

PerRoute<Bytes> made_copies(const Executor& executor) {
  PerRoute<Bytes> sums;
  sums[Route::out] = executor.copied_out();
  sums[Route::in] = executor.copied_in();
  sums[Route::spill] = executor.spilled();
  sums[Route::fetch] = executor.fetched();
  sums[Route::send] = executor.sent();
  sums[Route::receive] = executor.received();
  return sums;
}

TEST(Lanes, RandomPlansWithCopiesChangeNoBit) {
  test::FaultyBackend backend("reference");
  int moves = 0, spills = 0, sends = 0;
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    const Plan plain = random_plan(seed, backend);
    test::Job unmoved(plain, backend);
    const auto expected = loss_and_hash(unmoved);
    for (std::uint32_t choice = 0; choice < 4; ++choice) {
      int moved = 0, spilled = 0, sent = 0;
      Plan plan = with_offloads(plain, seed + 1000 * choice, choice == 0 ? 100 : 40, moved);
      if (choice == 1) plan = with_spills(plan, seed, 60, spilled);
      if (choice == 3) plan = with_spills(plan, seed, 60, sent, Tier::lent);
      ASSERT_EQ(check(plan).size(), 0U) << "seed " << seed << ": " << check(plan).front().text;
      backend.longest_delay_microseconds = choice == 0 ? 0 : 60;
      test::Job job(plan, backend, kFree, store_for(plan, Tier::disk), store_for(plan, Tier::lent));
      EXPECT_EQ(loss_and_hash(job), expected) << "seed " << seed << ", choice " << choice;
      const Executor& executor = job.executor();
      EXPECT_EQ(made_copies(executor), planned_copies(plan.phases.front())) << "seed " << seed;
      EXPECT_EQ(executor.high_water(), summarize(plan).peak[Tier::device]) << "seed " << seed;
      expect_ordered(plan.phases.front(), executor.timeline(), seed);
      // And on one thread, with the guard.
      if (choice == 3) {
        test::Job guarded(plan, backend, test::kGuarded, nullptr, store_for(plan, Tier::lent));
        EXPECT_EQ(loss_and_hash(guarded), expected) << "seed " << seed;
      }
      moves += moved;
      spills += spilled;
      sends += sent;
    }
  }
  EXPECT_GT(moves, 200);
  EXPECT_GT(spills, 25);
  EXPECT_GT(sends, 25);
}

// Nothing to compute: copies and their waits only, many times over.
TEST(Lanes, ManyStepsKeepTheirOrder) {
  test::FaultyBackend backend("null");
  for (std::uint32_t seed = 100; seed < 120; ++seed) {
    int moved = 0, spilled = 0;
    Plan plan = with_offloads(random_plan(seed, backend), seed, 80, moved);
    if (seed % 4 == 0) plan = with_spills(plan, seed, 50, spilled);
    if (moved == 0) continue;
    test::Job job(plan, backend, kFree, store_for(plan, Tier::disk), store_for(plan, Tier::lent));
    for (std::uint64_t step = 0; step < 20; ++step) {
      backend.longest_delay_microseconds = step % 4 == 3 ? 40 : 0;
      job.run(step);
      expect_ordered(plan.phases.front(), job.executor().timeline(), seed);
    }
  }
}

// A phase of bare ops, enough for Lanes, which looks at lanes and waits alone.
Phase bare_phase(std::vector<std::pair<Lane, std::vector<std::int32_t>>> ops) {
  Phase phase;
  for (auto& [lane, waits] : ops) {
    Op op;
    op.lane = lane;
    op.waits = std::move(waits);
    phase.ops.push_back(std::move(op));
  }
  return phase;
}

// In the total order, op 0 would wait for op 1 for ever.
TEST(Lanes, RunSideBySide) {
  std::atomic<bool> later_ran{false};
  Lanes lanes(bare_phase({{Lane::out, {}}, {Lane::compute, {}}, {Lane::in, {0, 1}}}), [&](std::size_t op) {
    if (op == 0) later_ran.wait(false);
    if (op != 1) return;
    later_ran = true;
    later_ran.notify_all();
  });
  for (int i = 0; i < 200; ++i) {
    later_ran = false;
    EXPECT_FALSE(lanes.run_step().error);
  }
}

TEST(Lanes, AFailureStopsAllLanesAndTheNextStepRuns) {
  // Each lane waits for the others again and again.
  std::vector<std::pair<Lane, std::vector<std::int32_t>>> ops;
  constexpr std::int32_t kOps = 60;
  constexpr std::array<Lane, 3> kOrder{Lane::compute, Lane::out, Lane::in};
  for (std::int32_t i = 0; i < kOps; ++i) {
    std::vector<std::int32_t> waits;
    if (i >= 1) waits.push_back(i - 1);
    if (i >= 5) waits.push_back(i - 5);
    ops.push_back({kOrder[static_cast<std::size_t>(i % 3)], waits});
  }
  std::atomic<std::int32_t> ran{0}, fail_at{-1};
  Lanes lanes(bare_phase(ops), [&](std::size_t op) {
    if (static_cast<std::int32_t>(op) == fail_at) throw Error("op {}", op);
    ++ran;
  });
  for (std::int32_t i = 0; i < kOps; ++i) {
    fail_at = i;
    ran = 0;
    const Lanes::Outcome outcome = lanes.run_step();
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.op, static_cast<std::size_t>(i));
    EXPECT_EQ(ran, i) << "every op here waits for the one before";
    fail_at = -1;
    ran = 0;
    EXPECT_FALSE(lanes.run_step().error);
    EXPECT_EQ(ran, kOps);
  }
}

// Two lanes fail at once: one of the two is reported, and nothing hangs.
TEST(Lanes, TwoFailuresAreOne) {
  Lanes lanes(bare_phase({{Lane::out, {}}, {Lane::in, {}}, {Lane::compute, {0, 1}}}),
              [&](std::size_t op) { throw Error("op {}", op); });
  for (int i = 0; i < 100; ++i) {
    const Lanes::Outcome outcome = lanes.run_step();
    ASSERT_TRUE(outcome.error);
    EXPECT_LT(outcome.op, 2U);
  }
}

TEST(Lanes, AreStartedAndEndedWithoutAStep) {
  for (int i = 0; i < 50; ++i) Lanes lanes(bare_phase({{Lane::out, {}}, {Lane::in, {0}}}), [](std::size_t) {});
}

// A throttled link moves the same bytes, in several pieces.
TEST(Link, AThrottledLinkMovesEverything) {
  test::FaultyBackend backend("null");
  std::vector<std::byte> from(3 * (std::size_t{1} << 20) + 77), to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 31 + i / 251);
  const Bytes bytes(static_cast<std::int64_t>(from.size()));
  Link(backend, 2e9).copy(to.data(), from.data(), bytes);
  EXPECT_EQ(to, from);
  EXPECT_EQ(backend.copies.calls(), 4);
  std::fill(to.begin(), to.end(), std::byte{});
  Link(backend, 0).copy(to.data(), from.data(), bytes);
  EXPECT_EQ(to, from);
  EXPECT_EQ(backend.copies.calls(), 5);
}

}  // namespace
}  // namespace tide
