#include "memory/tensor_cache.h"

#include <algorithm>
#include <span>

#include "base/error.h"

namespace tide {
namespace {

// The first from there on whose rank is at least that, or the end.
std::size_t first_at_least(std::span<const std::int64_t> ranks, std::size_t at, std::int64_t rank) {
  constexpr std::size_t kAtOnce = 16;
  for (; at + kAtOnce <= ranks.size(); at += kAtOnce) {
    int any = 0;
    for (const std::int64_t each : ranks.subspan(at, kAtOnce)) any |= static_cast<int>(each >= rank);
    if (any != 0) break;
  }
  while (at < ranks.size() && ranks[at] < rank) ++at;
  return at;
}

}  // namespace

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

void TensorCache::lock(Key key) {
  if (++entries_[key].locks == 1) rank_anew(key);
}

void TensorCache::unlock(Key key) {
  if (entries_[key].locks == 0) throw Error("tensor {} is unlocked, but it is not locked", key);
  if (--entries_[key].locks == 0) rank_anew(key);
}

std::int64_t TensorCache::rank(const Entry& entry) const {
  if (entry.locks > 0) return kLocked;
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

std::optional<std::size_t> TensorCache::dearest_of_cheapest(std::int64_t wanted, std::int64_t rank) const {
  const std::size_t count = ranks_.size();
  std::optional<std::size_t> best;
  for (std::size_t left = first_at_least(ranks_, 0, rank); left < count;) {
    std::size_t right = left;
    while (right < count && ranks_[right] >= rank) ++right;
    if (space(left, right) >= wanted) {
      look_for_cheaper(left, right, wanted, best);
      if (best) rank = ranks_[*best];
    }
    left = first_at_least(ranks_, right, rank);
  }
  return best;
}

// In `falling_` are the slots of the piece at hand that are dearer than all behind them: the first is the dearest.
void TensorCache::look_for_cheaper(std::size_t left, std::size_t end, std::int64_t wanted,
                                   std::optional<std::size_t>& best) const {
  falling_.resize(std::max(falling_.size(), end - left));
  std::size_t first = 0, last = 0;  // [first, last) of falling_
  for (std::size_t right = left; right < end; ++right) {
    // Together with this one nothing is cheaper than what there is.
    if (best && !cheaper(right, *best)) {
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
}

// As if tensors were evicted one after the other, the cheapest to lose first, until some that lie side by side leave a
// hole that is large enough.
std::optional<TensorCache::Victims> TensorCache::victims(Bytes bytes) const {
  const std::int64_t wanted = bytes.count();
  const std::size_t count = by_address_.size();
  if (*gaps_.rbegin() >= wanted)
    for (std::size_t k = 0; k <= count; ++k)
      if (gap(k) >= wanted) return Victims{Bytes(gap_begin(k)), {}};

  // One that is about as cheap as the last is soon found, if there is one.
  constexpr std::int64_t kAbout = 256;
  std::optional<std::size_t> dearest = dearest_of_cheapest(wanted, last_rank_ - kAbout);
  if (!dearest) dearest = dearest_of_cheapest(wanted, kLocked + 1);
  if (!dearest) return std::nullopt;
  last_rank_ = ranks_[*dearest];
  // All around it that are cheaper would be gone before it. Only it is sure to be needed: of the pieces with it, the
  // one with the fewest bytes.
  const auto goes = [&](std::size_t k) { return !cheaper(*dearest, k); };
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
