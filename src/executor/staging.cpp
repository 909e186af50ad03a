#include "executor/staging.h"

#include <cstring>

namespace tide {
namespace {

// Lays the entries out one behind the other.
Bytes lay_out(std::vector<Staging::Entry>& entries) {
  Bytes end;
  for (Staging::Entry& entry : entries) {
    entry.offset = end;
    end += entry.bytes.aligned();
  }
  return end;
}

}  // namespace

Staging::Staging(Backend& backend, std::vector<Entry> entries, std::byte* ahead)
    : backend_(backend), entries_(std::move(entries)), memory_(backend, lay_out(entries_), Tier::host), ahead_(ahead) {
  std::memset(memory_.at(Bytes()), 0, memory_.size().size());
}

std::byte* Staging::find(StorageId storage) const {
  for (const Entry& entry : entries_)
    if (entry.storage == storage) return memory_.at(entry.offset);
  return nullptr;
}

void Staging::send() {
  std::byte* ahead = ahead_;
  for (const Entry& entry : entries_) {
    if (!entry.is_input) continue;
    backend_.copy(entry.device, is_ahead_ ? ahead : memory_.at(entry.offset), entry.bytes);
    ahead += entry.bytes.aligned().count();
  }
  is_ahead_ = false;
}

void Staging::send_ahead() {
  if (ahead_ == nullptr) return;
  std::byte* ahead = ahead_;
  for (const Entry& entry : entries_) {
    if (!entry.is_input) continue;
    backend_.copy_beside(ahead, memory_.at(entry.offset), entry.bytes);
    ahead += entry.bytes.aligned().count();
  }
  is_ahead_ = true;
}

void Staging::fetch() {
  for (const Entry& entry : entries_)
    if (!entry.is_input) backend_.copy(memory_.at(entry.offset), entry.device, entry.bytes);
}

}  // namespace tide
