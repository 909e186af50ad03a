#include "cluster/lend.h"

#include <gtest/gtest.h>

#include <atomic>

#include "cluster/loans.h"
#include "cluster/threads.h"
#include "support/error_of.h"

namespace tide {
namespace {

constexpr std::size_t kBytes = 1'000'003;

TEST(Loan, IsSharedOnOneMachine) {
  on_thread_ranks(3, [](Communicator& communicator) {
    test::check_loans(communicator, kBytes);
    const Loans loans = make_loans(communicator, std::vector<Loan>{{0, 1, 100}});
    if (communicator.rank() == 1) test::expect(loans.borrowed.front()->is_shared(), "shared", communicator);
    communicator.barrier();
  });
}

TEST(Loan, IsServedBetweenMachines) {
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(3, {"a", "b", "c"});
  on_ranks(ranks, [](Communicator& communicator) {
    test::check_loans(communicator, kBytes);
    const Loans loans = make_loans(communicator, std::vector<Loan>{{0, 1, 100}});
    if (communicator.rank() == 1) test::expect(!loans.borrowed.front()->is_shared(), "served", communicator);
  });
}

std::vector<Bytes> sizes(const std::vector<std::int64_t>& counts) {
  std::vector<Bytes> made;
  for (const std::int64_t count : counts) made.push_back(Bytes(count));
  return made;
}

TEST(Loan, IsSharedOutAmongThoseThatLendNothing) {
  const auto loans = [](const std::vector<std::int64_t>& offered) { return share_out_loans(sizes(offered)); };
  EXPECT_EQ(loans({0, 1024}), (std::vector<Loan>{{1, 0, 1024}}));
  EXPECT_EQ(loans({2048, 0, 0}), (std::vector<Loan>{{0, 1, 1024}, {0, 2, 1024}}));
  // A part of two lenders, and what is left over.
  EXPECT_EQ(loans({0, 600, 0, 500}), (std::vector<Loan>{{1, 0, 512}, {1, 2, 88}, {3, 2, 424}}));
  EXPECT_EQ(loans({0, 0}), std::vector<Loan>());
  EXPECT_EQ(loans({5, 6}), std::vector<Loan>());
  EXPECT_EQ(loans({100, 0}), std::vector<Loan>());
  EXPECT_EQ(cut_loans(loans({0, 600, 0, 500}), sizes({0, 0, 256, 0})), (std::vector<Loan>{{1, 2, 88}, {3, 2, 168}}));
  EXPECT_EQ(cut_loans(loans({0, 600, 0, 500}), sizes({256, 0, 256, 0})),
            (std::vector<Loan>{{1, 0, 256}, {1, 2, 88}, {3, 2, 168}}));
}

TEST(Loan, OfADeviceIsOfOneLenderOnTheSameMachine) {
  const auto loans = [](const std::vector<std::int64_t>& offered, const std::vector<std::string>& hosts) {
    return pair_loans(sizes(offered), hosts);
  };
  EXPECT_EQ(loans({0, 1024}, {"a", "a"}), (std::vector<Loan>{{1, 0, 1024}}));
  EXPECT_EQ(loans({0, 1024}, {"a", "b"}), std::vector<Loan>());
  EXPECT_EQ(loans({0, 1024, 512, 0, 0}, {"a", "a", "a", "a", "a"}),
            (std::vector<Loan>{{1, 0, 512}, {2, 3, 512}, {1, 4, 512}}));
  EXPECT_EQ(loans({0, 1024, 0, 512}, {"a", "a", "b", "b"}), (std::vector<Loan>{{1, 0, 1024}, {3, 2, 512}}));
  EXPECT_EQ(loans({0, 255}, {"a", "a"}), std::vector<Loan>());
}

// One store over two loans, read and written at the same time.
TEST(Loan, OfSeveralLendersIsOneStore) {
  for (const std::vector<std::string>& hosts : {std::vector<std::string>(3, "a"), {"a", "b", "c"}}) {
    std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(3, hosts);
    on_ranks(ranks, [](Communicator& communicator) {
      const Loans loans = make_loans(communicator, std::vector<Loan>{{1, 0, 700}, {2, 0, 600}});
      if (communicator.rank() != 0) return communicator.barrier();
      BorrowedMemory store(loans);
      EXPECT_EQ(store.size(), Bytes(1300));
      std::vector<std::byte> written(1000), read(1000);
      for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<std::byte>(i * 7 & 0xFFU);
      store.write(Bytes(200), written.data(), Bytes(1000));
      {
        const std::jthread reader([&] { store.read(Bytes(200), read.data(), Bytes(1000)); });
        const std::vector<std::byte> others(100, std::byte{1});
        store.write(Bytes(1200), others.data(), Bytes(100));
        store.write(Bytes(0), others.data(), Bytes(100));
      }
      EXPECT_EQ(read, written);
      EXPECT_EQ(test::error_of([&] { store.read(Bytes(1250), read.data(), Bytes(51)); }),
                "bytes 1250 to 1301 are not in loans of 1300");
      communicator.barrier();
    });
  }
}

TEST(Loan, HasAnEnd) {
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(2, {"a", "b"});
  on_ranks(ranks, [](Communicator& communicator) {
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
    on_ranks(ranks, [&](Communicator& communicator) {
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
  on_thread_ranks(2, [&](Communicator& communicator) {
    const std::vector<Loan> loans{{1, 0, std::size_t{1} << 62U}};
    const std::string text = test::error_of([&] { (void)make_loans(communicator, loans); });
    if (text.starts_with("rank 1 on host localhost: 4611686018427387904 bytes of host memory cannot be lent: "))
      ++refused;
  });
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace tide
