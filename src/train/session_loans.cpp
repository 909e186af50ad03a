// Memory that the ranks of a job lend each other.
#include "cost/medium_speed.h"
#include "train/session.h"

namespace tide {
namespace {

// By rank.
std::vector<Bytes> gather_bytes(Communicator& communicator, Bytes own) {
  std::vector<Bytes> all;
  for (const std::string& text : communicator.gather(std::to_string(own.count())))
    all.push_back(Bytes(std::stoll(text)));
  return all;
}

}  // namespace

void Session::offer_loans() {
  if (ranks().count() == 1) {
    if (!ranks().lend.is_zero() || !ranks().lend_device.is_zero())
      throw Error("there is no other rank to lend memory to; leave --lend out");
    return;
  }
  Communicator& communicator = *ranks().communicator;
  offered_ = share_out_loans(gather_bytes(communicator, ranks().lend));
  std::vector<std::string> hosts;
  for (int rank = 0; rank < communicator.size(); ++rank) hosts.push_back(communicator.host(rank));
  offered_devices_ = pair_loans(gather_bytes(communicator, ranks().lend_device), hosts);
  const bool is_far = std::ranges::any_of(offered_, [&](const Loan& loan) {
    return loan.borrower == communicator.rank() && communicator.host(loan.lender) != communicator.host(loan.borrower);
  });
  const double usual = is_far ? kNetworkBytesPerSecond : kSharedBytesPerSecond;
  take_offer(offered_, Tier::lent, Medium::network,
             ranks().lent_bytes_per_second > 0 ? ranks().lent_bytes_per_second : usual);
  take_offer(offered_devices_, Tier::peer, Medium::peer, ranks().peer_bytes_per_second);
}

void Session::take_offer(const std::vector<Loan>& offered, Tier tier, Medium medium, double bytes_per_second) {
  Bytes own;
  for (const Loan& loan : offered)
    if (loan.borrower == ranks().rank()) own += Bytes(static_cast<std::int64_t>(loan.bytes));
  if (own.is_zero()) return;
  options_.planner.memory[tier] = own;
  if (bytes_per_second > 0) costs_.push_back(std::make_unique<MediumSpeed>(cost(), medium, bytes_per_second));
}

std::vector<Loan> Session::cut(const std::vector<Loan>& offered, Tier tier, Bytes needed) {
  const std::vector<Loan> loans = cut_loans(offered, gather_bytes(*ranks().communicator, needed));
  for (const Loan& loan : loans)
    if (loan.lender == ranks().rank()) lent_bytes_[tier] += Bytes(static_cast<std::int64_t>(loan.bytes));
  return loans;
}

// Loans are made when every rank has its plans: one that has none ends before anybody waits for it.
void Session::take_loans(const PerTier<Bytes>& needed) {
  Communicator* const communicator = ranks().communicator;
  if (!offered_.empty()) loans_ = make_loans(*communicator, cut(offered_, Tier::lent, needed[Tier::lent]));
  if (!loans_.borrowed.empty()) lent_ = std::make_unique<BorrowedMemory>(loans_);
  if (!offered_devices_.empty())
    device_loans_ =
        std::make_unique<DeviceLoans>(*communicator, backend(), cut(offered_devices_, Tier::peer, needed[Tier::peer]));
}

void Session::end_loans() {
  loans_.borrowed.clear();
  loans_.lent.clear();
  if (device_loans_) device_loans_->end();
}

}  // namespace tide
