// Everything that can fail fails in turn: there is one clear error, nothing is leaked, and
// the next step works as if nothing had happened.
#include "executor/faults.h"

#include <gtest/gtest.h>

#include <functional>

#include "executor/job.h"
#include "network/builder.h"
#include "plan/checker.h"
#include "support/error_of.h"
#include "support/spill.h"

namespace tide {
namespace {

using testing_support::disk_bytes;
using testing_support::with_offloads;
using testing_support::with_spills;

NetworkPtr faulty_network() {
  Builder net("small");
  Value x = net.input({1, 2, 6, 6});
  for (int i = 0; i < 3; ++i) {
    x = net.tanh(net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}));
    x = net.dropout(net.batch_norm(x));
  }
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 3}));
  return test::shared_network(std::move(net).build());
}

// With copies to host memory, some of which go on to disk.
Plan moving_plan(const Backend& backend, bool to_disk) {
  int moved = 0, spilled = 0;
  Plan plan =
      with_offloads(test::plan_for(faulty_network(), backend, "liveness", test::training_step(2)), 1, 100, moved);
  if (to_disk) plan = with_spills(plan, 1, 70, spilled);
  EXPECT_EQ(check(plan).size(), 0U);
  EXPECT_GT(moved, 4);
  EXPECT_EQ(spilled > 2, to_disk);
  return plan;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

class Faults : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] ExecutorOptions options() const { return {.guard = GetParam()}; }

  // One step from the same start: what the parameters are afterwards.
  std::uint64_t one_step(test::Job& job) {
    job.set_state(test::formula_values(*job.step().network));
    job.run(0, 0.1);
    return job.state_hash();
  }

  // Fails each of the calls that `trigger` counts in one step, one after the other.
  void fail_each(test::Job& job, test::Trigger& trigger, const std::function<void(const std::string&)>& judge) {
    trigger.arm(-1);
    const std::uint64_t expected = one_step(job);
    const std::int64_t calls = trigger.calls();
    ASSERT_GT(calls, 0);
    for (std::int64_t i = 0; i < calls; ++i) {
      trigger.arm(i);
      const std::string error = test::error_of([&] { one_step(job); });
      EXPECT_NE(error, "") << "call " << i;
      EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 0);
      judge(error);
      trigger.arm(-1);
      EXPECT_EQ(one_step(job), expected) << "after call " << i << " had failed";
    }
  }
};

TEST_P(Faults, EveryCopy) {
  test::FaultyBackend backend("reference");
  {
    test::Job job(moving_plan(backend, false), backend, options());
    fail_each(job, backend.copies, [](const std::string& error) {
      const bool out = contains(error, "from device to host ("), in = contains(error, "from host to device (");
      EXPECT_TRUE(error.starts_with("copying ") && (out || in)) << error;
      EXPECT_TRUE(contains(error, " bytes) failed: the copy was told to fail")) << error;
      EXPECT_TRUE(contains(error, ".")) << "names no tensor: " << error;
    });
  }
  EXPECT_EQ(backend.held_bytes, 0);
}

TEST_P(Faults, EveryTask) {
  test::FaultyBackend backend("reference");
  {
    test::Job job(moving_plan(backend, false), backend, options());
    fail_each(job, backend.kernels, [](const std::string& error) {
      EXPECT_TRUE(contains(error, " failed: the kernel was told to fail")) << error;
    });
  }
  EXPECT_EQ(backend.held_bytes, 0);
}

TEST_P(Faults, EveryReadAndWriteOfTheSpillFile) {
  test::FaultyBackend backend("reference");
  test::FaultyIo::Controls controls;
  const Plan plan = moving_plan(backend, true);
  test::Job job(plan, backend, options(),
                std::make_unique<SpillFile>(std::filesystem::path(), disk_bytes(plan),
                                            std::make_unique<test::FaultyIo>(controls, make_plain_io())));
  controls.error = ENOSPC;
  fail_each(job, controls.writes, [](const std::string& error) {
    EXPECT_TRUE(error.starts_with("copying ") && contains(error, " from host to disk (")) << error;
    EXPECT_TRUE(contains(error, "failed: No space left on device")) << error;
  });
  for (const int code : {EIO, 0}) {
    controls.error = code;
    fail_each(job, controls.reads, [code](const std::string& error) {
      EXPECT_TRUE(error.starts_with("copying ") && contains(error, " from disk to host (")) << error;
      EXPECT_TRUE(contains(error, code == EIO ? "Input/output error" : "nothing was moved")) << error;
    });
  }
}

// Short and interrupted calls are no failures.
TEST_P(Faults, ShortAndInterruptedCallsAreGoneOnWith) {
  test::FaultyBackend backend("reference");
  const Plan plan = moving_plan(backend, true);
  test::Job plain(plan, backend, options(), std::make_unique<SpillFile>(std::filesystem::path(), disk_bytes(plan)));
  const std::uint64_t expected = one_step(plain);

  test::FaultyIo::Controls controls;
  controls.halves = true;
  controls.interruptions = 7;
  test::Job job(plan, backend, options(),
                std::make_unique<SpillFile>(std::filesystem::path(), disk_bytes(plan),
                                            std::make_unique<test::FaultyIo>(controls, make_file_io())));
  EXPECT_EQ(one_step(job), expected);
  EXPECT_EQ(controls.interruptions, 0);
  EXPECT_GT(controls.reads.calls(), 20);
}

INSTANTIATE_TEST_SUITE_P(Executor, Faults, testing::Bool(),
                         [](const auto& row) { return std::string(row.param ? "Guarded" : "OnLanes"); });

TEST(AllocationFaults, EveryAllocation) {
  test::FaultyBackend backend("reference");
  const Plan plan = moving_plan(backend, false);
  const std::function<void()> make = [&] { test::Job(plan, backend, {.guard = false}); };
  for (test::Trigger* const trigger : {&backend.device_allocations, &backend.host_allocations}) {
    trigger->arm(-1);
    EXPECT_EQ(test::error_of(make), "");
    const std::int64_t calls = trigger->calls();
    ASSERT_EQ(calls, 1);
    trigger->arm(0);
    EXPECT_TRUE(contains(test::error_of(make), "told to fail"));
    EXPECT_EQ(backend.held_bytes, 0);
    trigger->arm(-1);
  }
}

TEST(AllocationFaults, TiersThatAreTooSmall) {
  test::FaultyBackend backend("null");
  const Plan plan = moving_plan(backend, true);
  const PlanSummary summary = summarize(plan);
  Arena device(backend, summary.peak[Tier::device]), host(backend, summary.peak[Tier::host], Tier::host);
  Arena small_host(backend, summary.peak[Tier::host] - Bytes(1), Tier::host);
  SpillFile disk({}, disk_bytes(plan)), small_disk({}, disk_bytes(plan) - Bytes(1));
  const auto error = [&](const Tiers& tiers) {
    return test::error_of([&] { static_cast<void>(make_executor(plan, backend, tiers)); });
  };
  EXPECT_EQ(error({device, &host, &disk}), "");
  EXPECT_TRUE(contains(error({device, &small_host, &disk}), "bytes of host memory, the arena has"));
  EXPECT_TRUE(contains(error({device, &host, &small_disk}), "bytes of disk memory, there are"));
  EXPECT_TRUE(contains(error({device, &host}), "bytes of disk memory and was given none"));
}

}  // namespace
}  // namespace tide
