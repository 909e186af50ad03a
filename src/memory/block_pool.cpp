#include "memory/block_pool.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace tide {

BlockPool::BlockPool(Bytes capacity, Bytes block) : block_(block.count()) {
  if (block_ <= 0 || block_ % kAlignment != 0)
    throw Error("a pool of {}-byte blocks is not possible; blocks are multiples of {}", block_, kAlignment);
  capacity_ = capacity.count() / block_ * block_;
  if (capacity_ > 0) holes_.emplace(0, capacity_);
}

std::int64_t BlockPool::whole_blocks(Bytes bytes) const {
  return checked_add(bytes.count(), block_ - 1) / block_ * block_;
}

BlockPool::Node BlockPool::take(std::int64_t address, std::int64_t bytes) {
  const auto hole = std::prev(holes_.upper_bound(address));
  const std::int64_t begin = hole->first, end = hole->first + hole->second;
  if (begin < address)
    hole->second = address - begin;
  else
    holes_.erase(hole);
  if (address + bytes < end) holes_.emplace(address + bytes, end - address - bytes);

  NodeId id = static_cast<NodeId>(nodes_.size());
  if (recycled_.empty()) {
    nodes_.emplace_back();
  } else {
    id = recycled_.back();
    recycled_.pop_back();
  }
  nodes_[id] = {address, bytes};
  used_ += bytes;
  high_water_ = std::max(high_water_, address + bytes);
  return {id, Bytes(address), Bytes(bytes)};
}

std::optional<BlockPool::Node> BlockPool::allocate(Bytes bytes, End end) {
  const std::int64_t wanted = whole_blocks(bytes);
  const auto fits = [&](const auto& hole) { return hole.second >= wanted; };
  if (end == End::low) {
    const auto hole = std::find_if(holes_.begin(), holes_.end(), fits);
    if (hole == holes_.end()) return std::nullopt;
    return take(hole->first, wanted);
  }
  const auto hole = std::find_if(holes_.rbegin(), holes_.rend(), fits);
  if (hole == holes_.rend()) return std::nullopt;
  return take(hole->first + hole->second - wanted, wanted);
}

std::optional<BlockPool::Node> BlockPool::allocate_at(Bytes address, Bytes bytes) {
  const std::int64_t wanted = whole_blocks(bytes);
  const auto behind = holes_.upper_bound(address.count());
  if (behind == holes_.begin()) return std::nullopt;
  const auto hole = std::prev(behind);
  if (checked_add(address.count(), wanted) > hole->first + hole->second) return std::nullopt;
  return take(address.count(), wanted);
}

void BlockPool::release(NodeId id) {
  if (id >= nodes_.size() || nodes_[id].bytes == 0)
    throw Error("node {} of the memory pool is released, but it is not allocated", id);
  const Entry entry = nodes_[id];
  nodes_[id] = {};
  recycled_.push_back(id);
  used_ -= entry.bytes;
  auto hole = holes_.emplace(entry.address, entry.bytes).first;
  const auto next = std::next(hole);
  if (next != holes_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    holes_.erase(next);
  }
  if (hole == holes_.begin()) return;
  const auto previous = std::prev(hole);
  if (previous->first + previous->second != hole->first) return;
  previous->second += hole->second;
  holes_.erase(hole);
}

Bytes BlockPool::largest_hole() const {
  std::int64_t largest = 0;
  for (const auto& [address, bytes] : holes_) largest = std::max(largest, bytes);
  return Bytes(largest);
}

}  // namespace tide
