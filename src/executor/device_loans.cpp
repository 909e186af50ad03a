#include "executor/device_loans.h"

#include <exception>

#include "base/error.h"

namespace tide {
namespace {

constexpr std::string_view kFailedExport = "failed: ";

// Devices share whole pages of their memory, so that a loan has pages of its own.
Bytes in_whole_pages(std::size_t bytes) {
  constexpr std::int64_t kPage = 2 << 20;
  const std::int64_t pages = static_cast<std::int64_t>(bytes) / kPage + (bytes % kPage != 0 ? 1 : 0);
  return Bytes(kPage) * pages;
}

}  // namespace

DeviceLoans::DeviceLoans(Communicator& communicator, Backend& backend, std::span<const Loan> loans)
    : communicator_(communicator), backend_(backend) {
  if (!backend.host_addressable()) {
    for (const Loan& loan : loans) lend(loan);
    return;
  }
  shared_ = make_loans(communicator, loans);
  for (const std::unique_ptr<Borrower>& borrower : shared_.borrowed) {
    if (!borrower->is_shared())
      throw Error("memory of another rank cannot be shared here; leave --lend-device out, and use --lend");
    borrowed_ = borrower->shared();
  }
}

void DeviceLoans::lend(const Loan& loan) {
  const int own = communicator_.rank();
  is_exported_ = true;
  std::string text;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      text = fmt::format("{}rank {} on host {}: {}", kFailedExport, own, communicator_.host(own), error.what());
    }
  };
  // All learn what the lender, and then the borrower, has to say.
  const auto tell = [&](int rank) {
    text = communicator_.gather(text)[static_cast<std::size_t>(rank)];
    if (text.starts_with(kFailedExport)) throw Error("{}", text.substr(kFailedExport.size()));
  };
  if (own == loan.lender)
    attempt([&] {
      lent_.push_back(std::make_unique<Arena>(backend_, in_whole_pages(loan.bytes)));
      text = backend_.export_memory(lent_.back()->at(Bytes()));
    });
  tell(loan.lender);
  if (own == loan.borrower)
    attempt([&] {
      borrowed_ = {backend_.open_memory(text), loan.bytes};
      is_opened_ = true;
    });
  tell(loan.borrower);
}

DeviceLoans::~DeviceLoans() {
  try {
    // Where this rank fails, the others are not coming.
    if (std::uncaught_exceptions() == 0) end();
  } catch (const Error&) {
    // The job has been given up.
  }
  if (is_opened_) backend_.close_memory(borrowed_.data());
}

void DeviceLoans::end() {
  if (is_opened_) backend_.close_memory(borrowed_.data());
  is_opened_ = false;
  borrowed_ = {};
  if (is_exported_) communicator_.barrier();
  is_exported_ = false;
  lent_.clear();
  shared_.borrowed.clear();
  shared_.lent.clear();
}

}  // namespace tide
