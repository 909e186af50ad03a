// Ranks that lend host memory to others: the same weights, and every byte that moves is planned.
#include <gtest/gtest.h>

#include "cluster/threads.h"
#include "train/plan_network.h"
#include "train/small_session.h"

namespace tide {
namespace {

using Hosts = std::vector<std::string>;
const Hosts kOneMachine{"a", "a"}, kTwoMachines{"a", "b"};  // shared memory, and messages

constexpr StepVariant kTraining{8, true}, kEvaluation{4, false};
constexpr int kBorrower = 1;

SessionOptions options_of(Communicator& communicator, bool guard = false) {
  SessionOptions options = test::session_options();
  options.executor.guard = guard;
  options.ranks.communicator = &communicator;
  options.ranks.bucket = Bytes(1000);
  return options;
}

// What a rank has that is short of memory: all that can leave the device does, and hardly any of it fits into host
// memory.
PlannerOptions short_of_memory() {
  const auto ranks = make_thread_ranks(2, kOneMachine);
  SessionOptions options = options_of(*ranks[0]);
  options.policy = "offload";
  options.planner.memory[Tier::disk] = Bytes(std::int64_t{1} << 30);
  options.planner.memory[Tier::host] = Bytes(0);
  options.planner.memory[Tier::host] = plan_network(test::small_network(), kTraining, options).floor[Tier::host];
  options.planner.memory[Tier::disk].reset();
  return options.planner;
}

struct Trained {
  std::vector<NamedTensor> state;
  double evaluated = 0;
  Plan plan;
  Bytes lent, borrowed, sent, received, disk;
  Bytes lent_device, borrowed_device, pushed, pulled;
};

// By rank. `settle` changes what rank kBorrower and its lender are told.
std::vector<Trained> train_two(const Hosts& hosts, bool guard,
                               const std::function<void(SessionOptions&)>& settle = {}) {
  std::vector<Trained> results(2);
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(2, hosts);
  const auto train = [&](Communicator& communicator) {
    SessionOptions options = options_of(communicator, guard);
    if (settle) settle(options);
    const test::SessionPtr session = test::open_session(test::small_network(), {kTraining, kEvaluation}, options);
    test::run_steps(*session, kTraining.batch, 3);
    const Executor& executor = session->executor(kTraining);
    const double evaluated = session->evaluate(*test::first_digits(8), 4).loss;
    results[static_cast<std::size_t>(communicator.rank())] = {.state = session->state(),
                                                              .evaluated = evaluated,
                                                              .plan = session->plan(kTraining),
                                                              .lent = session->lent_bytes(),
                                                              .borrowed = session->borrowed_bytes(),
                                                              .sent = executor.sent(),
                                                              .received = executor.received(),
                                                              .disk = session->disk_bytes(),
                                                              .lent_device = session->lent_device_bytes(),
                                                              .borrowed_device = session->borrowed_device_bytes(),
                                                              .pushed = executor.pushed(),
                                                              .pulled = executor.pulled()};
  };
  on_ranks(ranks, train, true);
  return results;
}

Bytes planned(const Plan& plan, Tier from, Tier to) {
  Bytes sum;
  for (const Op& op : plan.phases.front().ops)
    if (op.is_copy() && op.copy().from == from && op.copy().to == to)
      sum += plan.phases.front().step->storage(op.copy().storage).bytes;
  return sum;
}

TEST(Lending, TrainsTheSameWeights) {
  const std::vector<Trained> expected = train_two(kOneMachine, true);
  const PlannerOptions little = short_of_memory();
  for (const Hosts& hosts : {kOneMachine, kTwoMachines})
    for (const bool guard : {true, false}) {
      const std::vector<Trained> found = train_two(hosts, guard, [&](SessionOptions& options) {
        if (options.ranks.rank() != kBorrower) options.ranks.lend = Bytes(1 << 20);
        if (options.ranks.rank() != kBorrower) return;
        options.policy = "offload";
        options.planner = little;
      });
      const Trained &lender = found[0], &borrower = found[kBorrower];
      for (std::size_t rank = 0; rank < 2; ++rank) {
        EXPECT_TRUE(test::same(found[rank].state, expected[rank].state)) << hosts[1] << guard;
        EXPECT_EQ(found[rank].evaluated, expected[rank].evaluated);
      }
      EXPECT_FALSE(borrower.sent.is_zero());
      EXPECT_EQ(borrower.sent, planned(borrower.plan, Tier::host, Tier::lent));
      EXPECT_EQ(borrower.received, planned(borrower.plan, Tier::lent, Tier::host));
      EXPECT_EQ(borrower.borrowed, summarize(borrower.plan).peak[Tier::lent]);
      EXPECT_EQ(borrower.plan.memory[Tier::lent], Bytes(1 << 20));
      EXPECT_EQ(lender.lent, borrower.borrowed);
      EXPECT_TRUE(lender.sent.is_zero() && lender.borrowed.is_zero() && borrower.lent.is_zero());
    }
}

// Over a network that is slower than the disk, and with less than is needed, the disk has its part.
TEST(Lending, SharesWithADisk) {
  const std::vector<Trained> expected = train_two(kOneMachine, true);
  PlannerOptions little = short_of_memory();
  little.memory[Tier::disk] = Bytes(std::int64_t{1} << 30);
  const auto lend = [&](Bytes bytes, double speed) {
    const std::vector<Trained> found = train_two(kTwoMachines, false, [&](SessionOptions& options) {
      options.ranks.lent_bytes_per_second = speed;
      if (options.ranks.rank() != kBorrower) options.ranks.lend = bytes;
      if (options.ranks.rank() != kBorrower) return;
      options.policy = "offload";
      options.planner = little;
    });
    EXPECT_TRUE(test::same(found[kBorrower].state, expected[kBorrower].state));
    return found[kBorrower];
  };
  const Trained fast = lend(Bytes(1 << 20), 4e9);
  EXPECT_FALSE(fast.borrowed.is_zero());
  EXPECT_TRUE(fast.disk.is_zero());
  const Trained slow = lend(Bytes(1 << 20), 1e6);
  EXPECT_TRUE(slow.borrowed.is_zero());
  EXPECT_EQ(slow.disk, fast.borrowed);
  const Trained both = lend(Bytes(fast.borrowed.count() / 2), 4e9);
  EXPECT_FALSE(both.borrowed.is_zero() || both.disk.is_zero());
}

// Faster than the host, and where the host has no memory at all; with lanes, and guarded.
TEST(Lending, OfDeviceMemoryTrainsTheSameWeights) {
  const std::vector<Trained> expected = train_two(kOneMachine, true);
  for (const double speed : {0.0, 50e9})
    for (const bool guard : {true, false}) {
      const std::vector<Trained> found = train_two(kOneMachine, guard, [&](SessionOptions& options) {
        options.ranks.peer_bytes_per_second = speed;
        if (options.ranks.rank() != kBorrower) options.ranks.lend_device = Bytes(1 << 20);
        if (options.ranks.rank() != kBorrower) return;
        options.policy = "offload";
        options.planner.parameters = Parameters::device;
        if (speed == 0) options.planner.memory[Tier::host] = Bytes();
      });
      const Trained &lender = found[0], &borrower = found[kBorrower];
      for (std::size_t rank = 0; rank < 2; ++rank)
        EXPECT_TRUE(test::same(found[rank].state, expected[rank].state)) << speed << guard;
      EXPECT_FALSE(borrower.pushed.is_zero());
      EXPECT_EQ(borrower.pushed, planned(borrower.plan, Tier::device, Tier::peer));
      EXPECT_EQ(borrower.pulled, planned(borrower.plan, Tier::peer, Tier::device));
      EXPECT_EQ(borrower.borrowed_device, summarize(borrower.plan).peak[Tier::peer]);
      EXPECT_EQ(lender.lent_device, borrower.borrowed_device);
      EXPECT_TRUE(summarize(borrower.plan).peak[Tier::host].is_zero());
      EXPECT_TRUE(lender.pushed.is_zero() && borrower.sent.is_zero());
    }
}

// Which another machine's cannot be.
TEST(Lending, OfDeviceMemoryIsWithinAMachine) {
  const std::vector<Trained> found = train_two(kTwoMachines, false, [&](SessionOptions& options) {
    if (options.ranks.rank() != kBorrower) options.ranks.lend_device = Bytes(1 << 20);
  });
  EXPECT_TRUE(found[0].lent_device.is_zero() && !found[kBorrower].plan.memory[Tier::peer]);
}

TEST(Lending, IsForOthers) {
  SessionOptions options = test::session_options();
  options.ranks.lend = Bytes(1000);
  EXPECT_EQ(test::error_of([&] { static_cast<void>(Session::open(test::small_network(), {kTraining}, options)); }),
            "there is no other rank to lend memory to; leave --lend out");
}

// A rank that fails ends the others, whatever they are to each other: nobody waits for a loan to end.
TEST(Lending, EndsWithTheJob) {
  const PlannerOptions little = short_of_memory();
  for (const Hosts& hosts : {kOneMachine, kTwoMachines})
    for (const int fails : {0, 1})
      for (const bool fits : {true, false}) {
        std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(2, hosts);
        const auto train = [&](Communicator& communicator) {
          SessionOptions options = options_of(communicator);
          const bool borrows = communicator.rank() == kBorrower;
          if (borrows) options.policy = "offload";
          if (borrows) options.planner = little;
          if (!borrows) options.ranks.lend = Bytes(1 << 20);
          const bool is_hurt = communicator.rank() == fails;
          if (is_hurt && !fits) options.planner.memory[Tier::device] = Bytes(kAlignment);
          auto opened = Session::open(test::small_network(), {kTraining}, options);
          if (std::holds_alternative<PlanResult>(opened)) throw Error("it does not fit");
          Session& session = *std::get<test::SessionPtr>(opened);
          test::run_steps(session, kTraining.batch, 1);
          if (is_hurt) throw Error("it is hurt");
          test::run_steps(session, kTraining.batch, 100);
        };
        const std::string error = test::error_of([&] { on_ranks(ranks, train, true); });
        EXPECT_EQ(error, fits ? "it is hurt" : "it does not fit");
      }
}

}  // namespace
}  // namespace tide
