#include "memory/tensor_cache.h"

#include <algorithm>

#include "base/error.h"

namespace tide {

TensorCache::TensorCache(Bytes capacity, Replacement replacement, std::size_t keys)
    : capacity_(capacity.count()), replacement_(replacement), entries_(keys), gaps_{capacity_} {}

std::int64_t TensorCache::gap_begin(std::size_t at) const {
  return at == 0 ? 0 : entries_[by_address_[at - 1]].address + entries_[by_address_[at - 1]].bytes;
}
std::int64_t TensorCache::gap_end(std::size_t at) const {
  return at == by_address_.size() ? capacity_ : entries_[by_address_[at]].address;
}

std::size_t TensorCache::slot(std::int64_t address) const {
  const auto it = std::lower_bound(by_address_.begin(), by_address_.end(), address,
                                   [&](Key key, std::int64_t wanted) { return entries_[key].address < wanted; });
  return static_cast<std::size_t>(it - by_address_.begin());
}

void TensorCache::insert(Key key, Bytes address, Bytes bytes) {
  if (contains(key)) throw Error("tensor {} is in the cache already", key);
  const std::size_t at = slot(address.count());
  const bool hits_next = at < by_address_.size() && entries_[by_address_[at]].address < (address + bytes).count();
  const bool hits_previous =
      at > 0 && entries_[by_address_[at - 1]].address + entries_[by_address_[at - 1]].bytes > address.count();
  if (hits_next || hits_previous || (address + bytes).count() > capacity_)
    throw Error("tensor {} would lie over another in the cache, or outside it", key);
  gaps_.erase(gaps_.find(gap(at)));
  by_address_.insert(by_address_.begin() + static_cast<std::ptrdiff_t>(at), key);
  ++clock_;
  entries_[key] = {address.count(), bytes.count(), clock_, clock_, 0, 0};
  by_rank_.insert({rank(entries_[key]), key});
  gaps_.insert(gap(at));
  gaps_.insert(gap(at + 1));
}

void TensorCache::erase(Key key) {
  if (!contains(key)) throw Error("tensor {} is not in the cache", key);
  const std::size_t at = slot(entries_[key].address);
  gaps_.erase(gaps_.find(gap(at)));
  gaps_.erase(gaps_.find(gap(at + 1)));
  by_address_.erase(by_address_.begin() + static_cast<std::ptrdiff_t>(at));
  gaps_.insert(gap(at));
  by_rank_.erase({rank(entries_[key]), key});
  entries_[key] = {};
}

void TensorCache::touch(Key key) {
  by_rank_.erase({rank(entries_[key]), key});
  entries_[key].touched = ++clock_;
  by_rank_.insert({rank(entries_[key]), key});
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
  by_rank_.erase({rank(entries_[key]), key});
  entries_[key].next_use = position;
  by_rank_.insert({rank(entries_[key]), key});
}

// Tensors are taken as if evicted one after the other, the cheapest to lose first, until some
// that lie side by side leave a hole that is large enough.
std::optional<TensorCache::Victims> TensorCache::victims(Bytes bytes) const {
  const std::int64_t wanted = bytes.count();
  const std::size_t count = by_address_.size();
  const auto entry = [&](std::size_t k) -> const Entry& { return entries_[by_address_[k]]; };
  const auto space = [&](std::size_t left, std::size_t right) { return gap_end(right) - gap_begin(left); };
  if (*gaps_.rbegin() >= wanted)
    for (std::size_t k = 0; k <= count; ++k)
      if (gap(k) >= wanted) return Victims{Bytes(gap_begin(k)), {}};

  const std::int64_t call = ++calls_;
  if (runs_.size() < count) runs_.resize(count);
  for (auto next = by_rank_.rbegin(); next != by_rank_.rend(); ++next) {
    if (locked(next->second)) continue;
    const std::size_t newest = slot(entries_[next->second].address);
    Run run{call, newest, newest + 1};
    if (run.left > 0 && runs_[run.left - 1].call == call) run.left = runs_[run.left - 1].left;
    if (run.right < count && runs_[run.right].call == call) run.right = runs_[run.right].right;
    runs_[run.left] = runs_[run.right - 1] = runs_[newest] = run;
    if (space(run.left, run.right) < wanted) continue;
    // Only the newest of them is sure to be needed: of the pieces around it, the one with the fewest bytes.
    std::optional<Run> best;
    std::int64_t best_bytes = 0;
    Run piece{call, run.left, newest + 1};
    std::int64_t taken = 0;
    for (std::size_t k = piece.left; k < piece.right; ++k) taken += entry(k).bytes;
    while (true) {
      while (piece.left < newest && space(piece.left + 1, piece.right) >= wanted) taken -= entry(piece.left++).bytes;
      if (space(piece.left, piece.right) >= wanted && (!best || taken < best_bytes)) {
        best = piece;
        best_bytes = taken;
      }
      if (piece.right == run.right) break;
      taken += entry(piece.right++).bytes;
    }
    Victims result{Bytes(gap_begin(best->left)), {}};
    for (std::size_t k = best->left; k < best->right; ++k) result.keys.push_back(by_address_[k]);
    return result;
  }
  return std::nullopt;
}

}  // namespace tide
