// Host memory of another rank as a store. On the same machine it is shared; elsewhere the lender has a thread that
// serves the borrower, over a communicator of their own.
#pragma once

#include <thread>

#include "cluster/communicator.h"

namespace tide {

struct Loan {
  int lender = 0, borrower = 0;
  std::size_t bytes = 0;
};

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

// Holds the bytes of a loan. The borrower ends it; only where this rank fails does it not wait for that.
class Lender {
 public:
  Lender(std::unique_ptr<Communicator> communicator, int borrower, std::unique_ptr<SharedMemory> memory, bool serves);
  ~Lender();
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;

 private:
  void serve();

  std::unique_ptr<Communicator> communicator_;
  int borrower_;
  std::unique_ptr<SharedMemory> memory_;
  std::thread thread_;
};

// Reads and writes them. Of one thread at a time.
class Borrower {
 public:
  // `memory`: that of the lender, where it is on the same machine.
  Borrower(std::unique_ptr<Communicator> communicator, int lender, std::size_t bytes,
           std::unique_ptr<SharedMemory> memory);
  ~Borrower();
  Borrower(const Borrower&) = delete;
  Borrower& operator=(const Borrower&) = delete;

  void write(std::size_t offset, std::span<const std::byte> values);
  void read(std::size_t offset, std::span<std::byte> values);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool is_shared() const { return memory_ != nullptr; }

 private:
  void check_range(std::size_t offset, std::size_t bytes) const;

  std::unique_ptr<Communicator> communicator_;
  int lender_;
  std::size_t bytes_;
  std::unique_ptr<SharedMemory> memory_;
};

// What a rank has of all loans, in their order. What it has borrowed ends before what it has lent.
struct Loans {
  std::vector<std::unique_ptr<Lender>> lent;
  std::vector<std::unique_ptr<Borrower>> borrowed;
};
// By all ranks, with the same list. Throws the same Error on all of them where one does not have the memory.
// REQUIRES: nobody borrows of itself.
[[nodiscard]] Loans make_loans(Communicator& communicator, std::span<const Loan> loans);

}  // namespace tide
