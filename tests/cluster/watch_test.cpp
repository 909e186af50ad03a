// Ranks as threads, which pretend. Real processes are killed by ranks.cmake's tests.
#include "cluster/watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <future>

#include "cluster/threads.h"
#include "cluster/watch_link.h"

namespace tide {
namespace {

constexpr double kLong = 1000;

// What a rank was told, if it was.
struct Told {
  std::promise<WatchFailure> promise;
  std::future<WatchFailure> future = promise.get_future();
};

// The watches of so many ranks. They take no signals, since they are of one process.
class Watched {
 public:
  explicit Watched(std::vector<std::string> hosts, double silence = kLong, double hang = kLong)
      : told(hosts.size()), watches(hosts.size()) {
    ranks = make_thread_ranks(static_cast<int>(hosts.size()), hosts);
    on_ranks(ranks, [&](Communicator& communicator) {
      const auto rank = static_cast<std::size_t>(communicator.rank());
      WatchOptions options{
          .silence = silence, .hang = hang, .on_line = {}, .on_failure = {}, .on_stop = {}, .takes_stop_signal = false};
      options.on_line = [this](const std::string& line) {
        const std::lock_guard lock(mutex);
        said.push_back(line);
      };
      options.on_failure = [this, rank](const WatchFailure& failure) { told[rank].promise.set_value(failure); };
      watches[rank] = std::make_unique<Watch>(communicator, options);
    });
  }
  // All but one are told the same line, which these print.
  void expect_all_but(int gone, const std::string& line, const std::vector<int>& speakers) {
    for (int rank = 0; rank < static_cast<int>(told.size()); ++rank) {
      if (rank == gone) continue;
      const WatchFailure failure = told[static_cast<std::size_t>(rank)].future.get();
      EXPECT_EQ(failure.line, line) << "rank " << rank;
      EXPECT_EQ(failure.speaks, std::count(speakers.begin(), speakers.end(), rank) == 1) << "rank " << rank;
    }
  }
  [[nodiscard]] Watch& operator[](std::size_t rank) { return *watches[rank]; }

  // What was printed so far, by any rank.
  [[nodiscard]] std::vector<std::string> lines() {
    const std::lock_guard lock(mutex);
    return said;
  }

  std::mutex mutex;
  std::vector<std::string> said;
  std::vector<std::unique_ptr<Communicator>> ranks;
  std::vector<Told> told;
  std::vector<std::unique_ptr<Watch>> watches;
};

TEST(Watch, TellsWhoIsDeadAndDuringWhat) {
  Watched watched({"a", "a", "b", "b"});
  watched[0].set_advice("resume with --resume x.tide");
  const Watch::Operation operation = watched[3].name("conv3 backward-data");
  EXPECT_EQ(watched[3].name("conv3 backward-data"), operation);
  watched[3].set_step(17);
  watched[3].begin(operation, 0.1);
  watched[3].pretend(Watch::Pretence::dead);
  watched.expect_all_but(
      3,
      "tide: rank 3 on host b is dead during 'conv3 backward-data' of step 17; all ranks end; resume "
      "with --resume x.tide",
      {0});
}

TEST(Watch, TheLowestRankOfEachHostSpeaksForRank0) {
  Watched watched({"a", "a", "b", "b", "a"});
  watched[0].set_step(2);
  watched[0].pretend(Watch::Pretence::dead);
  watched.expect_all_but(0, "tide: rank 0 on host a is dead during 'preparing' of step 2; all ranks end", {1, 2});
}

TEST(Watch, TellsWhoIsStopped) {
  Watched watched({"a", "b", "c"}, 1.5);
  watched[2].begin(watched[2].name("planning"), 1000);
  watched[2].idle();  // words about it name what it did last
  watched[2].pretend(Watch::Pretence::stopped);
  const WatchFailure failure = watched.told[1].future.get();
  EXPECT_EQ(failure.rank, 2);
  EXPECT_NE(failure.line.find("tide: rank 2 on host c has been silent for "), std::string::npos) << failure.line;
  EXPECT_NE(failure.line.find("during 'planning'; all ranks end"), std::string::npos) << failure.line;
  EXPECT_TRUE(watched.told[0].future.get().speaks);
  // It wakes up, hears that it was given up, and says nothing.
  watched[2].pretend(Watch::Pretence::none);
  EXPECT_FALSE(watched.told[2].future.get().speaks);
}

TEST(Watch, ARankThatWasStoppedBlamesNobody) {
  Watched watched({"a", "b", "b"}, 1.5);
  watched[0].pretend(Watch::Pretence::stopped);
  EXPECT_EQ(watched.told[1].future.get().rank, 0);
  EXPECT_EQ(watched.told[2].future.get().rank, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  watched.watches[1].reset();
  watched.watches[2].reset();  // their processes end
  watched[0].pretend(Watch::Pretence::none);
  EXPECT_FALSE(watched.told[0].future.get().speaks);
}

// Ranks 0 and 2 have waited for longer than rank 1 computes.
TEST(Watch, BlamesTheOneThatTheOthersWaitFor) {
  Watched watched({"a", "b", "c"}, kLong, 0.5);
  watched[0].begin_collective(watched[0].name("sum"), 0);
  watched[2].begin_collective(watched[2].name("sum"), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  watched[1].begin(watched[1].name("relu4 forward"), 0);
  const WatchFailure failure = watched.told[0].future.get();
  EXPECT_EQ(failure.rank, 1);
  EXPECT_NE(failure.line.find("tide: rank 1 on host b has made no progress for "), std::string::npos) << failure.line;
  EXPECT_NE(failure.line.find(" during 'relu4 forward'; all ranks end"), std::string::npos) << failure.line;
  EXPECT_EQ(watched.told[1].future.get().line, failure.line);
  EXPECT_EQ(watched.told[2].future.get().line, failure.line);
}

TEST(Watch, BlamesRank0Too) {
  Watched watched({"a", "b"}, kLong, 0.5);
  watched[0].begin(watched[0].name("loss"), 0);
  EXPECT_EQ(watched.told[1].future.get().rank, 0);
  EXPECT_TRUE(watched.told[0].future.get().speaks);
}

TEST(Watch, LetsThoseWorkWhoGetOn) {
  Watched watched({"a", "b"}, kLong, 2);
  const Watch::Operation operation = watched[1].name("epoch");
  watched[1].begin(operation, 0);
  for (int i = 0; i < 25; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    watched[1].progress();
  }
  watched[0].begin(watched[0].name("epoch"), 1000);  // five times as long is a while
  watched[1].idle();
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  on_ranks(watched.ranks,
           [&](Communicator& communicator) { watched[static_cast<std::size_t>(communicator.rank())].finish(); });
  for (const Told& told : watched.told)
    EXPECT_EQ(told.future.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
}

TEST(Watch, EndsInOrderInAnyOrder) {
  Watched watched({"a", "b", "c"});
  on_ranks(watched.ranks, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    std::this_thread::sleep_for(std::chrono::milliseconds(100 * ((rank + 1) % 3)));
    watched[rank].finish();
    watched.watches[rank].reset();
  });
  for (const Told& told : watched.told)
    EXPECT_EQ(told.future.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
}

// It is named before it is gone: a launcher that sees it go ends those who would name it.
TEST(Watch, WithoutAnOrderlyEndARankHasFailed) {
  for (const std::size_t rank : {1U, 0U}) {
    Watched watched({"a", "b", "c"});
    const std::string line =
        fmt::format("tide: rank {} on host {} has failed during 'preparing'; all ranks end", rank, rank ? "b" : "a");
    watched.watches[rank].reset();
    EXPECT_EQ(watched.lines(), std::vector{line});
    watched.expect_all_but(static_cast<int>(rank), line, rank == 0 ? std::vector<int>() : std::vector{0});
    EXPECT_EQ(watched.lines(), std::vector{line});
  }
}

TEST(Watch, AReasonIsGivenBeforeTheRankEnds) {
  for (const std::size_t rank : {2U, 0U}) {
    Watched watched({"a", "b", "c"});
    const std::string line = rank == 0 ? "tide: no room" : "tide: rank 2 on host c: no room";
    watched[rank].fail("no room", 2);
    EXPECT_EQ(watched.lines(), std::vector{line});
    for (Told& told : watched.told) EXPECT_EQ(told.future.get().exit_code, 2);
    EXPECT_EQ(watched.lines(), std::vector{line});
  }
}

TEST(Watch, HandsOnARequestToStop) {
  std::vector<std::unique_ptr<Communicator>> alone = make_thread_ranks(1);
  std::promise<void> stopped;
  WatchOptions options;
  options.on_stop = [&] { stopped.set_value(); };
  Watch watch(*alone.front(), options);
  std::raise(SIGTERM);
  stopped.get_future().get();
  watch.finish();
}

// A rank that fails at once says so right behind its answer.
TEST(Watch, LinksKeepWhatFollowsTheMessageThatIsWaitedFor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  auto from = std::make_unique<WatchLink>(ends[0]);
  WatchLink to(ends[1]);
  for (const WatchWord word : {WatchWord::hello, WatchWord::alive, WatchWord::verdict}) from->send({.word = word});
  from.reset();
  const std::vector<WatchMessage> first = to.receive(1);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].word, WatchWord::hello);
  const std::vector<WatchMessage> others = to.receive();
  ASSERT_EQ(others.size(), 2U);
  EXPECT_EQ(others[0].word, WatchWord::alive);
  EXPECT_EQ(others[1].word, WatchWord::verdict);
  EXPECT_TRUE(to.is_closed());
}

TEST(Watch, OfManyRanks) {
  std::vector<std::string> hosts(64, "a");
  Watched watched(hosts);
  watched[50].pretend(Watch::Pretence::dead);
  watched.expect_all_but(50, "tide: rank 50 on host a is dead during 'preparing'; all ranks end", {0});
}

}  // namespace
}  // namespace tide
