// Host memory of another rank as a store. On the same machine it is shared; elsewhere the lender has two threads that
// serve the borrower, one what it writes and one what it reads, each over a communicator of its own.
#pragma once

#include <array>
#include <thread>

#include "base/store.h"
#include "cluster/communicator.h"

namespace tide {

struct Loan {
  int lender = 0, borrower = 0;
  std::size_t bytes = 0;

  friend bool operator==(const Loan&, const Loan&) = default;
};

// What ranks offer, by rank, divided among those that offer nothing: all of it, laid end to end in the order of the
// ranks, is cut into equal parts, one for each of them in the same order. So a part may have several lenders.
[[nodiscard]] std::vector<Loan> share_out_loans(std::span<const Bytes> offered);
// The same where a part must lie in one piece, and on the borrower's machine: of the ranks of a machine, the first that
// offers nothing has the first lender, the next the next, and around again. What one offers is cut into equal parts.
[[nodiscard]] std::vector<Loan> pair_loans(std::span<const Bytes> offered, std::span<const std::string> hosts);
// Of these so many bytes for each borrower, by rank, and those of the first lenders.
[[nodiscard]] std::vector<Loan> cut_loans(std::span<const Loan> loans, std::span<const Bytes> needed);

// Memory that several processes can have. It has no name, so that nothing of it is left when they are gone.
class SharedMemory {
 public:
  // Takes the memory, or throws an Error where there is not so much.
  explicit SharedMemory(std::size_t bytes);
  // That of another process on this machine, by its text().
  SharedMemory(const std::string& text, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // What another process finds it by, while this one lives.
  [[nodiscard]] std::string text() const;

 private:
  void map();

  int descriptor_ = -1;
  std::size_t bytes_ = 0;
  std::byte* data_ = nullptr;
};

// Between the two of a loan that is not shared: what is written goes over one, what is read over the other, so that
// both can be done at once.
struct LoanChannels {
  std::unique_ptr<Communicator> writes, reads;
};

// Holds the bytes of a loan. The borrower ends it; only where this rank fails does it not wait for that.
class Lender {
 public:
  // Without channels the borrower has the memory itself.
  Lender(LoanChannels channels, int borrower, std::unique_ptr<SharedMemory> memory);
  ~Lender();
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;

 private:
  void serve(Communicator& channel);

  LoanChannels channels_;
  int borrower_;
  std::unique_ptr<SharedMemory> memory_;
  std::vector<std::thread> threads_;
};

// Reads and writes them. One thread may read while another writes.
class Borrower {
 public:
  // `memory`: that of the lender, where it is on the same machine; there are no channels then.
  Borrower(LoanChannels channels, int lender, std::size_t bytes, std::unique_ptr<SharedMemory> memory);
  ~Borrower();
  Borrower(const Borrower&) = delete;
  Borrower& operator=(const Borrower&) = delete;

  void write(std::size_t offset, std::span<const std::byte> values);
  void read(std::size_t offset, std::span<std::byte> values);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool is_shared() const { return memory_ != nullptr; }
  // The memory itself. REQUIRES: is_shared().
  [[nodiscard]] std::span<std::byte> shared() const { return {memory_->data(), bytes_}; }

 private:
  void check_range(std::size_t offset, std::size_t bytes) const;
  void end(Communicator& channel) noexcept;

  LoanChannels channels_;
  int lender_;
  std::size_t bytes_;
  std::unique_ptr<SharedMemory> memory_;
};

// What a rank has of all loans, in their order. What it has borrowed ends before what it has lent.
struct Loans {
  std::vector<std::unique_ptr<Lender>> lent;
  std::vector<std::unique_ptr<Borrower>> borrowed;
};
// All that a rank has borrowed, end to end. `loans` outlives it.
class BorrowedMemory final : public Store {
 public:
  explicit BorrowedMemory(const Loans& loans) : loans_(loans) {}
  void read(Bytes offset, std::byte* to, Bytes bytes) override;
  void write(Bytes offset, const std::byte* from, Bytes bytes) override;
  [[nodiscard]] Bytes size() const override;

 private:
  // Calls move(borrower, offset in its loan, bytes done before, bytes) for each loan that has some of them.
  template <typename Move>
  void each_part(Bytes offset, Bytes bytes, const Move& move) const;

  const Loans& loans_;
};

// By all ranks, with the same list. Throws the same Error on all of them where one does not have the memory.
// REQUIRES: nobody borrows of itself.
[[nodiscard]] Loans make_loans(Communicator& communicator, std::span<const Loan> loans);

}  // namespace tide
