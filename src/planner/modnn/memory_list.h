// moDNN's memory manager: all of memory as a linked list of segments in the order of their
// addresses, each a block or free. Where no free range is large enough, neighbours are looked for
// that would make one if they left (the paper's Figure 4):
//
//   | (1) | (2) | (3) |   (4)   |   (5)   | (6) |      a request of 4, and (4) may not leave:
//   | 2   | 2   | 1   |   2     |   3     | 1   |      (1)(2) or (5)(6)
#pragma once

#include <algorithm>
#include <iterator>
#include <list>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/id.h"

namespace tide {

class MemoryList {
 public:
  // Which end of a free range a block is put at. What stays long at one end of memory and what
  // comes and goes at the other keeps free ranges together.
  enum class End : std::uint8_t { low, high };
  enum class Fit : std::uint8_t { first, tightest };

  struct Segment {
    std::int64_t begin = 0, bytes = 0;
    StorageId block;   // invalid: free
    double ready = 0;  // of a free one: when whatever was there is out of the way
  };

  // Where a block could go.
  struct Place {
    Bytes address;
    double ready = 0;  // when it is out of use
  };

  // Neighbours that would make room.
  struct Range {
    Bytes address, bytes;
    std::span<const StorageId> blocks;  // that have to leave
    double ready = 0;                   // when the free part of it is
  };

  // A range that was judged.
  struct Scheme {
    Bytes address, bytes;
    std::vector<StorageId> blocks;
    double ready = 0;         // when all of it is free
    double delay = 0;         // of the task at hand, and of the tasks that will need the blocks again
    std::int64_t copied = 0;  // bytes that are not in host memory yet
    std::int32_t next = 0;    // which task needs one of them first
  };

  // Blocks are numbered below `blocks`.
  MemoryList(Bytes capacity, std::size_t blocks);

  [[nodiscard]] bool has(StorageId block) const { return present_[block.index()]; }
  [[nodiscard]] Bytes address(StorageId block) const { return Bytes(where_[block.index()]->begin); }
  [[nodiscard]] Bytes free() const { return Bytes(free_); }
  [[nodiscard]] Bytes capacity() const { return Bytes(capacity_); }
  [[nodiscard]] const std::list<Segment>& segments() const { return segments_; }

  // The free range that is ready first; of those ready at `now`, the first from the given end or the smallest.
  [[nodiscard]] std::optional<Place> find_free(Bytes bytes, End end, double now, Fit fit = Fit::first) const;

  // REQUIRES: free from there on.
  void take(StorageId block, Bytes address, Bytes bytes);
  // What is ready at `now` grows together.
  void release(StorageId block, double ready, double now);

  // Calls visit(range) for every range that would hold the request if the blocks in it left. Each begins
  // with a segment and is no longer than necessary; a block for which may_leave is false is in none.
  template <typename MayLeave, typename Visit>
  void each_scheme(Bytes bytes, MayLeave may_leave, Visit visit) const {
    std::vector<StorageId> blocks;
    // Behind a block that has to stay there is nothing for what begins before it.
    for (auto first = segments_.begin(); first != segments_.end();) {
      blocks.clear();
      std::int64_t total = 0;
      double ready = 0;
      auto last = first;
      for (; last != segments_.end() && total < bytes.count(); ++last) {
        if (last->block.valid() && !may_leave(last->block)) break;
        if (last->block.valid())
          blocks.push_back(last->block);
        else
          ready = std::max(ready, last->ready);
        total += last->bytes;
      }
      if (total < bytes.count()) {
        if (last == segments_.end()) return;
        first = std::next(last);
        continue;
      }
      visit(Range{Bytes(first->begin), Bytes(total), blocks, ready});
      ++first;
    }
  }

  // Of all these ranges the one that delays least, by the scheme that judge(range) makes of each. Of several
  // such, the one that is free first: copies of what was made long ago can have run long ago, and the link
  // has no idle time to lose. Then the one that copies least, then the one that is not needed for longest.
  template <typename MayLeave, typename Judge>
  [[nodiscard]] std::optional<Scheme> best_scheme(Bytes bytes, MayLeave may_leave, Judge judge) const {
    std::optional<Scheme> best;
    const auto rank = [](const Scheme& scheme) {
      return std::tuple(scheme.delay, scheme.ready, scheme.copied, -scheme.next);
    };
    each_scheme(bytes, may_leave, [&](const Range& range) {
      Scheme scheme = judge(range);
      if (best && rank(scheme) >= rank(*best)) return;
      scheme.blocks.assign(range.blocks.begin(), range.blocks.end());
      best = std::move(scheme);
    });
    return best;
  }

 private:
  using Iterator = std::list<Segment>::iterator;

  std::int64_t capacity_, free_;
  std::list<Segment> segments_;
  std::vector<Iterator> where_;  // by block
  std::vector<bool> present_;    // likewise
};

}  // namespace tide
