#include "cluster/launch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "cluster/threads.h"
#include "support/error_of.h"

namespace tide {
namespace {

// What launchers set is gone at the start of a test, and back as it was behind it.
class Launch : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : kNames) {
      const char* const value = std::getenv(name);
      before_.emplace_back(value ? std::optional<std::string>(value) : std::nullopt);
      if (std::string(name) != "PATH") unsetenv(name);
    }
  }
  void TearDown() override {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      if (before_[i])
        setenv(kNames[i], before_[i]->c_str(), 1);
      else
        unsetenv(kNames[i]);
    }
  }
  static void set(const char* name, const char* value) { setenv(name, value, 1); }

 private:
  static constexpr std::array kNames{"OMPI_COMM_WORLD_SIZE",
                                     "OMPI_COMM_WORLD_RANK",
                                     "PMI_SIZE",
                                     "PMI_RANK",
                                     "PMIX_RANK",
                                     "SLURM_NTASKS",
                                     "SLURM_PROCID",
                                     "SLURM_STEP_ID",
                                     "SLURM_STEP_NUM_TASKS",
                                     "PATH"};
  std::vector<std::optional<std::string>> before_;
};

void expect_launched(const char* launcher, int size, int rank) {
  const std::optional<Launched> found = find_launcher();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, launcher);
  EXPECT_EQ(found->size, size);
  EXPECT_EQ(found->rank, rank);
}

TEST_F(Launch, IsSeenInTheEnvironment) {
  EXPECT_FALSE(find_launcher());
  set("PMIX_RANK", "2");
  expect_launched("PMIx", 0, 2);
  set("PMI_SIZE", "3");
  set("PMI_RANK", "1");
  expect_launched("mpiexec", 3, 1);
  set("OMPI_COMM_WORLD_SIZE", "4");
  set("OMPI_COMM_WORLD_RANK", "3");
  expect_launched("mpirun", 4, 3);
}

TEST_F(Launch, OfABatchScriptIsNone) {
  set("SLURM_NTASKS", "8");
  set("SLURM_PROCID", "0");
  EXPECT_FALSE(find_launcher());
  set("SLURM_STEP_ID", "0");
  expect_launched("srun", 8, 0);
  set("SLURM_STEP_NUM_TASKS", "2");
  set("SLURM_PROCID", "1");
  set("PMIX_RANK", "1");
  expect_launched("srun", 2, 1);
}

TEST_F(Launch, RefusesNumbersThatAreNone) {
  set("OMPI_COMM_WORLD_RANK", "many");
  EXPECT_EQ(test::error_of([] { (void)find_launcher(); }),
            "the environment has OMPI_COMM_WORLD_RANK='many', which is no number of processes: unset it, or use a "
            "launcher");
}

TEST_F(Launch, OfNobodyOrOfOneIsARankAlone) {
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::unique_ptr<Communicator> alone = join_ranks();
    EXPECT_EQ(alone->size(), 1);
    EXPECT_FALSE(alone->host(0).empty());
    leave_ranks(std::move(alone));
    set("OMPI_COMM_WORLD_SIZE", "1");
    set("OMPI_COMM_WORLD_RANK", "0");
  }
}

#if TIDE_HAS_MPI
TEST_F(Launch, CommandRunsThisProgram) {
  std::string name = "tide", word = "train", option = "--batch=8";
  const std::vector<char*> arguments{name.data(), word.data(), option.data()};
  try {
    const std::vector<std::string> command = launch_command(4, arguments);
    EXPECT_EQ(command[0].substr(command[0].size() - 7), "/mpirun");
    EXPECT_EQ(command[1], "-n");
    EXPECT_EQ(command[2], "4");
    ASSERT_GT(command.size(), 6U);
    EXPECT_NE(command[command.size() - 3].find("cluster_test"), std::string::npos);
    EXPECT_EQ(command[command.size() - 2], "train");
    EXPECT_EQ(command[command.size() - 1], "--batch=8");
  } catch (const Error&) {
    GTEST_SKIP() << "there is no mpirun";
  }
  set("PATH", "/nowhere");
  EXPECT_EQ(test::error_of([&] { (void)launch_command(4, arguments); }),
            "there is no mpirun in PATH to start 4 processes with: install openmpi-bin");
}
#else
TEST_F(Launch, WithoutMpiSaysHowToGetIt) {
  set("OMPI_COMM_WORLD_SIZE", "2");
  set("OMPI_COMM_WORLD_RANK", "0");
  EXPECT_NE(test::error_of([] { (void)join_ranks(); }).find("libopenmpi-dev"), std::string::npos);
  EXPECT_NE(test::error_of([] { (void)launch_command(2, {}); }).find("libopenmpi-dev"), std::string::npos);
}
#endif

TEST_F(Launch, CoresAreSharedAmongTheRanksOfAMachine) {
  const int all = threads_for(LocalRank{0, 1});
  EXPECT_GE(all, 1);
  EXPECT_EQ(threads_for(LocalRank{1, 2}), std::max(1, all / 2));
  EXPECT_EQ(threads_for(LocalRank{0, 100'000}), 1);
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(3, {"a", "b", "a"});
  std::vector<int> threads(3);
  on_ranks(ranks, [&](Communicator& communicator) {
    threads[static_cast<std::size_t>(communicator.rank())] = threads_for(communicator);
  });
  EXPECT_EQ(threads, (std::vector<int>{std::max(1, all / 2), all, std::max(1, all / 2)}));
}

}  // namespace
}  // namespace tide
