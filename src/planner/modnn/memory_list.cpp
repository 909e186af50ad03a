#include "planner/modnn/memory_list.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace tide {

MemoryList::MemoryList(Bytes capacity, std::size_t blocks)
    : capacity_(capacity.count()), free_(capacity.count()), where_(blocks), present_(blocks, false) {
  if (capacity_ > 0) segments_.push_back({0, capacity_, StorageId(), 0});
}

std::optional<MemoryList::Place> MemoryList::find_free(Bytes bytes, End end, double now, Fit fit) const {
  std::optional<Place> best;
  std::int64_t least = 0;  // bytes of its range
  // Free neighbours that were not ready together are one range all the same.
  const auto search = [&](auto begin, auto stop) {
    for (auto first = begin; first != stop; ++first) {
      std::int64_t total = 0;
      double ready = 0;
      for (auto it = first; it != stop && !it->block.valid() && total < bytes.count(); ++it) {
        total += it->bytes;
        ready = std::max(ready, it->ready);
      }
      if (total < bytes.count()) continue;
      std::int64_t left = 0;
      for (auto it = first; fit == Fit::tightest && it != stop && !it->block.valid(); ++it) left += it->bytes;
      if (!best || std::pair(std::max(ready, now), left) < std::pair(std::max(best->ready, now), least)) {
        best = Place{Bytes(end == End::low ? first->begin : first->begin + first->bytes - bytes.count()), ready};
        least = left;
      }
      if (ready <= now && fit == Fit::first) return;
    }
  };
  if (end == End::low)
    search(segments_.begin(), segments_.end());
  else
    search(segments_.rbegin(), segments_.rend());
  return best;
}

void MemoryList::take(StorageId block, Bytes address, Bytes bytes) {
  const std::int64_t begin = address.count();
  const std::int64_t stop = begin + bytes.count();
  auto it = segments_.begin();
  while (it != segments_.end() && it->begin + it->bytes <= begin) ++it;
  if (it != segments_.end() && it->begin < begin) {
    segments_.insert(it, {it->begin, begin - it->begin, it->block, it->ready});
    it->bytes -= begin - it->begin;
    it->begin = begin;
  }
  while (it != segments_.end() && it->begin < stop) {
    if (it->block.valid()) throw Error("a block is put where another one is");
    if (it->begin + it->bytes > stop) {
      it->bytes -= stop - it->begin;
      it->begin = stop;
      break;
    }
    it = segments_.erase(it);
  }
  where_[block.index()] = segments_.insert(it, {begin, bytes.count(), block, 0});
  present_[block.index()] = true;
  free_ -= bytes.count();
}

void MemoryList::release(StorageId block, double ready, double now) {
  const Iterator segment = where_[block.index()];
  segment->block = StorageId();
  segment->ready = ready;
  present_[block.index()] = false;
  free_ += segment->bytes;
  const auto joins = [&](Iterator low) {
    const Iterator high = std::next(low);
    if (high == segments_.end() || low->block.valid() || high->block.valid()) return false;
    if (low->ready != high->ready && std::max(low->ready, high->ready) > now) return false;
    high->begin = low->begin;
    high->bytes += low->bytes;
    high->ready = std::max(low->ready, high->ready);
    return true;
  };
  Iterator at = segment;
  if (joins(at)) at = segments_.erase(at);
  if (at != segments_.begin() && joins(std::prev(at))) segments_.erase(std::prev(at));
}

}  // namespace tide
