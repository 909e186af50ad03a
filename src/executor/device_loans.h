// Device memory that ranks of one machine lend each other, which the borrower's device reaches itself. Where the host
// can address it, it is shared host memory; else the backend exports and opens it.
#pragma once

#include "cluster/lend.h"
#include "executor/arena.h"

namespace tide {

class DeviceLoans {
 public:
  // By all ranks, with the same list, in which nobody borrows twice. Both outlive it. Throws an Error where one cannot
  // lend or borrow.
  DeviceLoans(Communicator& communicator, Backend& backend, std::span<const Loan> loans);
  ~DeviceLoans();
  DeviceLoans(const DeviceLoans&) = delete;
  DeviceLoans& operator=(const DeviceLoans&) = delete;

  // What this rank has of another; nothing where it borrows none.
  [[nodiscard]] std::span<std::byte> borrowed() const { return borrowed_; }
  // By all ranks: nobody uses the memory any more, and lenders get theirs back when all borrowers have closed it.
  void end();

 private:
  void lend(const Loan& loan);

  Communicator& communicator_;
  Backend& backend_;
  Loans shared_;
  std::vector<std::unique_ptr<Arena>> lent_;
  std::span<std::byte> borrowed_;
  bool is_opened_ = false;    // `borrowed_` is the backend's to close
  bool is_exported_ = false;  // on some rank
};

}  // namespace tide
