// What every loan has to do, whatever the ranks are: made by all ranks at once.
#pragma once

#include "cluster/calls.h"
#include "cluster/lend.h"

namespace tide::test {

// Every rank lends to the next one, and the last rank to all.
inline void check_loans(Communicator& communicator, std::size_t bytes) {
  const int ranks = communicator.size();
  std::vector<Loan> loans;
  for (int rank = 0; rank < ranks; ++rank) loans.push_back({rank, (rank + 1) % ranks, bytes});
  for (int rank = 0; rank + 1 < ranks; ++rank) loans.push_back({ranks - 1, rank, bytes});
  const Loans made = make_loans(communicator, loans);
  expect(made.borrowed.size() == (communicator.rank() + 1 < ranks ? 2U : 1U), "number of loans", communicator);

  for (std::size_t loan = 0; loan < made.borrowed.size(); ++loan) {
    Borrower& borrower = *made.borrowed[loan];
    const auto pattern = [&](std::size_t i) {
      return static_cast<std::byte>((i * 31 + i / 251 + loan * 7 + static_cast<std::size_t>(communicator.rank())) &
                                    0xFFU);
    };
    std::vector<std::byte> written(bytes), read(bytes);
    for (std::size_t i = 0; i < bytes; ++i) written[i] = pattern(i);
    const std::size_t cut = bytes / 3;  // in two parts, back to front
    borrower.write(cut, std::span(written).subspan(cut));
    borrower.write(0, std::span(written).first(cut));
    borrower.write(bytes, {});
    borrower.read(0, read);
    expect(read == written, "what was lent comes back", communicator);
    read.assign(10, std::byte{0});
    borrower.read(cut - 5, read);
    expect(std::equal(read.begin(), read.end(), &written[cut - 5]), "a part of it", communicator);
    // Small pieces, which are on their way when the call that sends them could return.
    for (std::size_t i = 0; i < 300; ++i) {
      const std::vector<std::byte> piece(1000 + i, static_cast<std::byte>(i & 0xFFU));
      read.assign(piece.size(), std::byte{0});
      borrower.write(i, piece);
      borrower.read(i, read);
      expect(read == piece, "what was just written", communicator);
    }
  }
  communicator.barrier();
}

}  // namespace tide::test
