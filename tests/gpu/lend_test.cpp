// Device memory that one rank lends to another, on the one GPU there is: two backends in one process.
#include <gtest/gtest.h>

#include "cluster/threads.h"
#include "train/small_session.h"

namespace tide {
namespace {

constexpr StepVariant kStep{8, true};

struct Pushed {
  std::vector<NamedTensor> state;
  Bytes borrowed, pushed, pulled;
  bool recorded = false;
};

// By rank; the first lends.
std::vector<Pushed> train_on_gpu(bool lends) {
  std::vector<Pushed> results(2);
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(2);
  const auto train = [&](Communicator& communicator) {
    SessionOptions options = test::session_options();
    options.backend = "cuda";
    options.ranks.communicator = &communicator;
    options.ranks.road = SumRoad::host;
    if (lends && communicator.rank() == 0) options.ranks.lend_device = Bytes(4 << 20);
    if (lends && communicator.rank() == 1) {
      options.policy = "offload";
      options.planner.parameters = Parameters::device;
      options.planner.memory[Tier::host] = Bytes();
    }
    const test::SessionPtr session = test::open_session(test::small_network(), {kStep}, options);
    test::run_steps(*session, kStep.batch, 3);
    const Executor& executor = session->executor(kStep);
    results[static_cast<std::size_t>(communicator.rank())] = {session->state(), session->borrowed_device_bytes(),
                                                              executor.pushed(), executor.pulled(),
                                                              executor.is_recorded()};
    session->end_loans();
  };
  on_ranks(ranks, train, true);
  return results;
}

TEST(GpuLending, OfDeviceMemoryTrainsTheSameWeights) {
  try {
    static_cast<void>(make_backend("cuda"));
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const std::vector<Pushed> expected = train_on_gpu(false), found = train_on_gpu(true);
  for (std::size_t rank = 0; rank < 2; ++rank) EXPECT_TRUE(test::same(found[rank].state, expected[rank].state));
  EXPECT_FALSE(found[1].borrowed.is_zero() || found[1].pushed.is_zero() || found[1].pulled.is_zero());
  EXPECT_EQ(found[1].recorded, expected[1].recorded);
}

}  // namespace
}  // namespace tide
