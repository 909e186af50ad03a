// SuperNeurons' memory pool (its section 3.2.1): one large allocation, cut into blocks;
// a request takes the first hole that is large enough, and a table from id to node finds
// it again on release. Holes that touch grow together.
//
// The pool hands out addresses and touches no memory, so that planners run it too.
// Not thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/bytes.h"

namespace tide {

class BlockPool {
 public:
  static constexpr std::int64_t kPaperBlock = 1024;

  // Which end of memory a request is served from. Things that stay long at one end and
  // short-lived ones at the other keep the holes together.
  enum class End : std::uint8_t { low, high };

  using NodeId = std::uint32_t;
  struct Node {
    NodeId id = 0;
    Bytes address;
    Bytes bytes;  // whole blocks
  };

  // REQUIRES: `block` is a positive multiple of kAlignment. A capacity that is not a whole number of blocks is
  // rounded down.
  explicit BlockPool(Bytes capacity, Bytes block = Bytes(kPaperBlock));

  // None where no hole is large enough. REQUIRES: bytes > 0.
  [[nodiscard]] std::optional<Node> allocate(Bytes bytes, End end = End::low);
  // At this place and no other. REQUIRES: `address` is a multiple of the block.
  [[nodiscard]] std::optional<Node> allocate_at(Bytes address, Bytes bytes);
  // Throws an Error where the id is not allocated: a double release is a bug of the caller.
  void release(NodeId id);

  [[nodiscard]] Bytes capacity() const { return Bytes(capacity_); }
  [[nodiscard]] Bytes used() const { return Bytes(used_); }
  [[nodiscard]] Bytes free() const { return Bytes(capacity_ - used_); }
  [[nodiscard]] Bytes high_water() const { return Bytes(high_water_); }  // highest end of a node so far
  [[nodiscard]] Bytes largest_hole() const;
  // From address to bytes, none empty, no two touching.
  [[nodiscard]] const std::map<std::int64_t, std::int64_t>& holes() const { return holes_; }

 private:
  [[nodiscard]] std::int64_t whole_blocks(Bytes bytes) const;
  Node take(std::int64_t address, std::int64_t bytes);

  struct Entry {
    std::int64_t address = 0, bytes = 0;  // bytes == 0: not in use
  };

  std::int64_t block_, capacity_, used_ = 0, high_water_ = 0;
  std::map<std::int64_t, std::int64_t> holes_;
  std::vector<Entry> nodes_;      // by id
  std::vector<NodeId> recycled_;  // ids to use again
};

}  // namespace tide
