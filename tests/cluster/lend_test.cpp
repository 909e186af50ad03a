#include "cluster/lend.h"

#include <gtest/gtest.h>

#include <atomic>

#include "cluster/loans.h"
#include "support/error_of.h"
#include "support/rank_threads.h"

namespace tide {
namespace {

constexpr std::size_t kBytes = 1'000'003;

TEST(Loan, IsSharedOnOneMachine) {
  test::on_thread_ranks(3, [](Communicator& communicator) {
    test::check_loans(communicator, kBytes);
    const Loans loans = make_loans(communicator, std::vector<Loan>{{0, 1, 100}});
    if (communicator.rank() == 1) test::expect(loans.borrowed.front()->is_shared(), "shared", communicator);
    communicator.barrier();
  });
}

TEST(Loan, IsServedBetweenMachines) {
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(3, {"a", "b", "c"});
  test::on_ranks(ranks, [](Communicator& communicator) {
    test::check_loans(communicator, kBytes);
    const Loans loans = make_loans(communicator, std::vector<Loan>{{0, 1, 100}});
    if (communicator.rank() == 1) test::expect(!loans.borrowed.front()->is_shared(), "served", communicator);
  });
}

TEST(Loan, HasAnEnd) {
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(2, {"a", "b"});
  test::on_ranks(ranks, [](Communicator& communicator) {
    const Loans loans = make_loans(communicator, std::vector<Loan>{{0, 1, 100}});
    if (communicator.rank() == 0) return;
    std::vector<std::byte> values(10);
    EXPECT_EQ(test::error_of([&] { loans.borrowed.front()->write(95, values); }),
              "bytes 95 to 105 are not in a loan of 100");
    EXPECT_NE(test::error_of([&] { loans.borrowed.front()->read(101, {}); }), "");
  });
}

// A job that is given up, and a lender that fails.
TEST(Loan, EndsWithTheJob) {
  for (const bool fails : {false, true}) {
    std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(2, {"a", "b"});
    std::atomic<int> stopped = 0;
    test::on_ranks(ranks, [&](Communicator& communicator) {
      try {
        const Loans loans = make_loans(communicator, std::vector<Loan>{{0, 1, 100}});
        if (communicator.rank() == 0 && !fails) communicator.interrupt();
        if (communicator.rank() == 0) throw Error("failed");
        std::vector<std::byte> values(10);
        for (;;) loans.borrowed.front()->write(0, values);
      } catch (const Error&) {
        ++stopped;
      }
    });
    EXPECT_EQ(stopped, 2);
  }
}

TEST(Loan, OfMoreThanThereIsIsRefusedOnAllRanks) {
  std::atomic<int> refused = 0;
  test::on_thread_ranks(2, [&](Communicator& communicator) {
    const std::vector<Loan> loans{{1, 0, std::size_t{1} << 62U}};
    const std::string text = test::error_of([&] { (void)make_loans(communicator, loans); });
    if (text.starts_with("rank 1 on host localhost: 4611686018427387904 bytes of host memory cannot be lent: "))
      ++refused;
  });
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace tide
