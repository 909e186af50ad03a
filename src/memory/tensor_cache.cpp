#include "memory/tensor_cache.h"

#include <algorithm>

#include "base/error.h"

namespace tide {

TensorCache::TensorCache(Bytes capacity, Replacement replacement, std::size_t keys)
    : capacity_(capacity.count()), replacement_(replacement), entries_(keys), gaps_{capacity_} {}

std::size_t TensorCache::slot(std::int64_t address) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(begins_, address) - begins_.begin());
}

void TensorCache::insert(Key key, Bytes address, Bytes bytes) {
  if (contains(key)) throw Error("tensor {} is in the cache already", key);
  const std::size_t at = slot(address.count());
  if (gap_begin(at) > address.count() || gap_end(at) < (address + bytes).count())
    throw Error("tensor {} would lie over another in the cache, or outside it", key);
  gaps_.erase(gaps_.find(gap(at)));
  ++clock_;
  entries_[key] = {address.count(), bytes.count(), clock_, clock_, 0, 0};
  const auto offset = static_cast<std::ptrdiff_t>(at);
  by_address_.insert(by_address_.begin() + offset, key);
  begins_.insert(begins_.begin() + offset, address.count());
  ends_.insert(ends_.begin() + offset, (address + bytes).count());
  ranks_.insert(ranks_.begin() + offset, rank(entries_[key]));
  gaps_.insert(gap(at));
  gaps_.insert(gap(at + 1));
}

void TensorCache::erase(Key key) {
  if (!contains(key)) throw Error("tensor {} is not in the cache", key);
  const std::size_t at = slot(entries_[key].address);
  gaps_.erase(gaps_.find(gap(at)));
  gaps_.erase(gaps_.find(gap(at + 1)));
  const auto offset = static_cast<std::ptrdiff_t>(at);
  by_address_.erase(by_address_.begin() + offset);
  begins_.erase(begins_.begin() + offset);
  ends_.erase(ends_.begin() + offset);
  ranks_.erase(ranks_.begin() + offset);
  gaps_.insert(gap(at));
  entries_[key] = {};
}

void TensorCache::touch(Key key) {
  entries_[key].touched = ++clock_;
  rank_anew(key);
}

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

void TensorCache::set_next_use(Key key, std::int64_t position) {
  entries_[key].next_use = position;
  rank_anew(key);
}

// Goes through all runs without locked tensors, from left to right. In `falling_` are the slots of the run at hand that
// are dearer than all behind them: the first is the dearest.
std::optional<std::size_t> TensorCache::dearest_of_cheapest(std::int64_t wanted) const {
  const std::size_t count = by_address_.size();
  if (falling_.size() < count) falling_.resize(count);
  std::optional<std::size_t> best;
  std::size_t left = 0, first = 0, last = 0;  // the run begins at `left`; [first, last) of falling_
  for (std::size_t right = 0; right < count; ++right) {
    // Together with this one nothing is cheaper than what there is.
    if ((best && !cheaper(right, *best)) || locked(by_address_[right])) {
      left = right + 1;
      first = last = 0;
      continue;
    }
    while (last > first && cheaper(falling_[last - 1], right)) --last;
    falling_[last++] = right;
    if (space(left, right + 1) < wanted) continue;
    while (left < right && space(left + 1, right + 1) >= wanted)
      if (falling_[first] == left++) ++first;
    best = falling_[first];
    left = *best + 1;  // without it there may be a cheaper one yet
    ++first;
  }
  return best;
}

// As if tensors were evicted one after the other, the cheapest to lose first, until some that lie side by side leave a
// hole that is large enough.
std::optional<TensorCache::Victims> TensorCache::victims(Bytes bytes) const {
  const std::int64_t wanted = bytes.count();
  const std::size_t count = by_address_.size();
  if (*gaps_.rbegin() >= wanted)
    for (std::size_t k = 0; k <= count; ++k)
      if (gap(k) >= wanted) return Victims{Bytes(gap_begin(k)), {}};

  const std::optional<std::size_t> dearest = dearest_of_cheapest(wanted);
  if (!dearest) return std::nullopt;
  // All around it that are cheaper would be gone before it. Only it is sure to be needed: of the pieces with it, the one
  // with the fewest bytes.
  const auto goes = [&](std::size_t k) { return !locked(by_address_[k]) && !cheaper(*dearest, k); };
  const auto bytes_in = [&](std::size_t k) { return ends_[k] - begins_[k]; };
  std::size_t left = *dearest, right = *dearest + 1, best_left = 0, best_right = 0;
  std::int64_t taken = bytes_in(left), least = 0;
  while (left > 0 && goes(left - 1)) taken += bytes_in(--left);
  while (true) {
    while (left < *dearest && space(left + 1, right) >= wanted) taken -= bytes_in(left++);
    if (space(left, right) >= wanted && (best_right == 0 || taken < least)) {
      best_left = left;
      best_right = right;
      least = taken;
    }
    if (right == count || !goes(right)) break;
    taken += bytes_in(right++);
  }
  Victims result{Bytes(gap_begin(best_left)), {}};
  for (std::size_t k = best_left; k < best_right; ++k) result.keys.push_back(by_address_[k]);
  return result;
}

}  // namespace tide
