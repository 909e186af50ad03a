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

Staging::Staging(Backend& backend, std::vector<Entry> entries)
    : backend_(backend), entries_(std::move(entries)), memory_(backend, lay_out(entries_), Tier::host) {
  std::memset(memory_.at(Bytes()), 0, memory_.size().size());
}

std::byte* Staging::find(StorageId storage) const {
  for (const Entry& entry : entries_)
    if (entry.storage == storage) return memory_.at(entry.offset);
  return nullptr;
}

void Staging::send() {
  for (const Entry& entry : entries_)
    if (entry.is_input) backend_.copy(entry.device, memory_.at(entry.offset), entry.bytes);
}

void Staging::fetch() {
  for (const Entry& entry : entries_)
    if (!entry.is_input) backend_.copy(memory_.at(entry.offset), entry.device, entry.bytes);
}

}  // namespace tide
