// SuperNeurons' tensor cache (its Algorithm 2): device memory as a cache of tensors. A
// tensor that is used moves to the front; one that a running task needs is locked; when
// memory is short, unlocked ones are evicted from the back.
//
// The paper evicts until as many bytes are free as are wanted, wherever they lie. Here
// victims lie side by side, so that what they leave is one hole: of all such runs, the one
// whose dearest tensor is the cheapest to lose. For tensors of one size this is Algorithm 2.
//
// Not thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace tide {

// Whom the cache evicts first.
enum class Replacement : std::uint8_t {
  lru,       // least recently used: the paper's
  fifo,      // longest on the device
  largest,   // most bytes
  next_use,  // used again last: known here, since a step's order is
};

class TensorCache {
 public:
  using Key = std::uint32_t;

  // Manages addresses [0, capacity); keys are below `keys`.
  TensorCache(Bytes capacity, Replacement replacement, std::size_t keys);

  // In front, unlocked. REQUIRES: not in the cache; its addresses are free.
  void insert(Key key, Bytes address, Bytes bytes);
  void erase(Key key);
  // A hit: moves to the front.
  void touch(Key key);
  // REQUIRES: in the cache.
  void set_next_use(Key key, std::int64_t position);
  // Locks count; a locked tensor is no victim.
  void lock(Key key);
  void unlock(Key key);

  [[nodiscard]] bool contains(Key key) const { return entries_[key].bytes > 0; }
  [[nodiscard]] bool locked(Key key) const { return entries_[key].locks > 0; }
  [[nodiscard]] std::size_t size() const { return by_address_.size(); }
  // In order of address.
  [[nodiscard]] const std::vector<Key>& keys() const { return by_address_; }
  [[nodiscard]] Bytes address(Key key) const { return Bytes(entries_[key].address); }
  [[nodiscard]] Bytes bytes(Key key) const { return Bytes(entries_[key].bytes); }

  // What has to go so that `bytes` lie free in one piece; none where locked tensors are in
  // the way everywhere.
  struct Victims {
    Bytes address;  // where the hole will begin
    std::vector<Key> keys;
  };
  [[nodiscard]] std::optional<Victims> victims(Bytes bytes) const;

 private:
  struct Entry {
    std::int64_t address = 0, bytes = 0;  // bytes == 0: not in the cache
    std::int64_t entered = 0, touched = 0;
    std::int64_t next_use = 0;
    std::int32_t locks = 0;
  };
  static constexpr std::int64_t kLocked = INT64_MIN;
  // The higher, the sooner it goes.
  [[nodiscard]] std::int64_t rank(const Entry& entry) const;
  [[nodiscard]] std::size_t slot(std::int64_t address) const;
  void rank_anew(Key key) { ranks_[slot(entries_[key].address)] = rank(entries_[key]); }
  // The space before the tensor in a slot, or behind the last.
  [[nodiscard]] std::int64_t gap_begin(std::size_t at) const { return at == 0 ? 0 : ends_[at - 1]; }
  [[nodiscard]] std::int64_t gap_end(std::size_t at) const { return at == begins_.size() ? capacity_ : begins_[at]; }
  [[nodiscard]] std::int64_t gap(std::size_t at) const { return gap_end(at) - gap_begin(at); }
  // Whether the tensor in the first slot goes before that in the second.
  [[nodiscard]] bool cheaper(std::size_t a, std::size_t b) const {
    return ranks_[a] != ranks_[b] ? ranks_[a] > ranks_[b] : by_address_[a] > by_address_[b];
  }
  // What is free once the tensors in [left, right) are gone.
  [[nodiscard]] std::int64_t space(std::size_t left, std::size_t right) const {
    return gap_end(right) - gap_begin(left);
  }
  // The slot of the tensor that is the dearest to lose of those in the cheapest run with so much space; none where that
  // one's rank is below `rank`.
  [[nodiscard]] std::optional<std::size_t> dearest_of_cheapest(std::int64_t wanted, std::int64_t rank) const;
  // The same for a part of [left, end), a run, if that is cheaper than `best`.
  void look_for_cheaper(std::size_t left, std::size_t end, std::int64_t wanted, std::optional<std::size_t>& best) const;

  std::int64_t capacity_;
  Replacement replacement_;
  std::vector<Entry> entries_;  // by key
  // Those in the cache, by address; and of each, beside each other for the sake of victims().
  std::vector<Key> by_address_;
  std::vector<std::int64_t> begins_, ends_, ranks_;
  std::multiset<std::int64_t> gaps_;          // bytes between neighbours, and at either end
  mutable std::vector<std::size_t> falling_;  // of look_for_cheaper()
  mutable std::int64_t last_rank_ = 0;        // that victims() found
  std::int64_t clock_ = 0;
};

}  // namespace tide
