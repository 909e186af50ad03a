#include "memory/tensor_cache.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "base/error.h"

namespace tide {

TensorCache::TensorCache(Bytes capacity, Replacement replacement, std::size_t keys)
    : capacity_(capacity.count()), replacement_(replacement), entries_(keys) {}

std::size_t TensorCache::slot(std::int64_t address) const {
  const auto it = std::lower_bound(by_address_.begin(), by_address_.end(), address,
                                   [&](Key key, std::int64_t wanted) { return entries_[key].address < wanted; });
  return static_cast<std::size_t>(it - by_address_.begin());
}

void TensorCache::insert(Key key, Bytes address, Bytes bytes) {
  if (contains(key)) throw Error("tensor {} is in the cache already", key);
  const std::size_t at = slot(address.count());
  const bool hits_next = at < by_address_.size() && entries_[by_address_[at]].address < (address + bytes).count();
  const bool hits_previous = at > 0 && entries_[by_address_[at - 1]].address + entries_[by_address_[at - 1]].bytes > address.count();
  if (hits_next || hits_previous || (address + bytes).count() > capacity_)
    throw Error("tensor {} would lie over another in the cache, or outside it", key);
  by_address_.insert(by_address_.begin() + static_cast<std::ptrdiff_t>(at), key);
  ++clock_;
  entries_[key] = {address.count(), bytes.count(), clock_, clock_, 0, 0};
}

void TensorCache::erase(Key key) {
  if (!contains(key)) throw Error("tensor {} is not in the cache", key);
  by_address_.erase(by_address_.begin() + static_cast<std::ptrdiff_t>(slot(entries_[key].address)));
  entries_[key] = {};
}

void TensorCache::touch(Key key) { entries_[key].touched = ++clock_; }

void TensorCache::unlock(Key key) {
  if (entries_[key].locks == 0) throw Error("tensor {} is unlocked, but it is not locked", key);
  --entries_[key].locks;
}

std::int64_t TensorCache::rank(const Entry& entry) const {
  switch (replacement_) {
    case Replacement::lru: return -entry.touched;
    case Replacement::fifo: return -entry.entered;
    case Replacement::largest: return entry.bytes;
    case Replacement::next_use: return entry.next_use;
  }
  return 0;
}

std::optional<TensorCache::Victims> TensorCache::victims(Bytes bytes) const {
  const std::int64_t wanted = bytes.count();
  const std::size_t count = by_address_.size();
  const auto entry = [&](std::size_t k) -> const Entry& { return entries_[by_address_[k]]; };
  const auto space_begin = [&](std::size_t k) { return k == 0 ? 0 : entry(k - 1).address + entry(k - 1).bytes; };
  const auto space_end = [&](std::size_t k) { return k == count ? capacity_ : entry(k).address; };

  // Runs [left, right) of unlocked tensors, grown and shrunk from left to right; the deque
  // holds the run's candidates for its lowest rank, lowest first.
  struct Best {
    std::int64_t rank, bytes;
    std::size_t left, right;
  };
  std::optional<Best> best;
  std::deque<std::size_t> lowest;
  std::size_t left = 0;
  std::int64_t taken = 0;
  for (std::size_t right = 0; right <= count; ++right) {
    // The run [left, right) with the space up to tensor `right`.
    while (left <= right && space_end(right) - space_begin(left) >= wanted) {
      const std::int64_t rank_here = left == right ? std::numeric_limits<std::int64_t>::max() : rank(entry(lowest.front()));
      if (!best || rank_here > best->rank || (rank_here == best->rank && taken < best->bytes)) best = Best{rank_here, taken, left, right};
      if (left == right) break;
      if (lowest.front() == left) lowest.pop_front();
      taken -= entry(left).bytes;
      ++left;
    }
    if (right == count) break;
    if (entry(right).locks > 0) {
      lowest.clear();
      taken = 0;
      left = right + 1;
      continue;
    }
    while (!lowest.empty() && rank(entry(lowest.back())) >= rank(entry(right))) lowest.pop_back();
    lowest.push_back(right);
    taken += entry(right).bytes;
  }
  if (!best) return std::nullopt;
  Victims result{Bytes(space_begin(best->left)), {}};
  for (std::size_t k = best->left; k < best->right; ++k) result.keys.push_back(by_address_[k]);
  return result;
}

}  // namespace tide
