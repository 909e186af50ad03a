// Room on the device: holes, evictions, copies.
#include <algorithm>
#include <iterator>

#include "planner/runtime/runtime.h"

namespace tide {

double VirtualRuntime::ready_time(std::int64_t begin, std::int64_t end) const {
  double ready = 0;
  auto it = in_flight_.upper_bound(begin);
  if (it != in_flight_.begin() && std::prev(it)->second.end > begin) --it;
  for (; it != in_flight_.end() && it->first < end; ++it) ready = std::max(ready, it->second.ready);
  return ready;
}

// The out lane runs in order, so that the newest copy out of a byte is the last to be over.
void VirtualRuntime::set_ready_time(std::int64_t begin, std::int64_t end, double ready) {
  auto it = in_flight_.upper_bound(begin);
  if (it != in_flight_.begin() && std::prev(it)->second.end > begin) --it;
  while (it != in_flight_.end() && it->first < end) {
    const auto [old_begin, old] = *it;
    it = in_flight_.erase(it);
    if (old_begin < begin) in_flight_.emplace(old_begin, InFlight{begin, old.ready});
    if (old.end > end) in_flight_.emplace(end, InFlight{old.end, old.ready});
  }
  in_flight_.emplace(begin, InFlight{end, ready});
}

// The hole that is ready first; among those ready now, the first from the given end.
std::optional<VirtualRuntime::Hole> VirtualRuntime::choose_hole(Bytes bytes, bool low) const {
  std::optional<Hole> best;
  // True once there is no better one.
  const auto look_at = [&](std::int64_t address, std::int64_t length) {
    if (length < bytes.count()) return false;
    const std::int64_t begin = low ? address : address + length - bytes.count();
    const double ready = std::max(ready_time(begin, begin + bytes.count()), clock_.free[Lane::compute]);
    if (!best || ready < best->ready) best = Hole{Bytes(begin), ready};
    return ready <= clock_.free[Lane::compute];
  };
  const auto& holes = pool_.holes();
  if (low)
    for (auto hole = holes.begin(); hole != holes.end() && !look_at(hole->first, hole->second);) ++hole;
  else
    for (auto hole = holes.rbegin(); hole != holes.rend() && !look_at(hole->first, hole->second);) ++hole;
  return best;
}

bool VirtualRuntime::allocate(StorageId id) {
  // What stays until the backward pass lies at the bottom and is given up from there; what
  // comes and goes lies at the top.
  const bool kept = facts_.rests(id) || step_.storage(id).tensor_class == TensorClass::activation;
  const bool low = kept && (record_.has(id, Tier::host) || done_ + 1 < facts_.first_backward());
  std::optional<Hole> hole = choose_hole(size(id), low);
  if (!hole) {
    const auto victims = cache_.victims(size(id));
    if (!victims) return false;
    for (const TensorCache::Key victim : victims->keys) evict(StorageId(victim));
    hole = choose_hole(size(id), low);
  }
  const auto node = pool_.allocate_at(hole->address, size(id));
  nodes_[id.index()] = node->id;
  record_.open(id, Tier::device, bottom_ + node->address);
  cache_.insert(key(id), node->address, node->bytes);
  return true;
}

// Gives the room back; the value is gone from the device, and from the host too where
// nobody needs it any more.
void VirtualRuntime::release(StorageId id) {
  const TensorId value = record_.value(id, Tier::device);
  const bool dead = !value.valid() || (!needed(value) && pending_[value.index()] == 0);
  if (dead && record_.has(id, Tier::host) && record_.value(id, Tier::host) == value) record_.close(id, Tier::host);
  record_.close(id, Tier::device);
  cache_.erase(key(id));
  pool_.release(nodes_[id.index()]);
}

void VirtualRuntime::evict(StorageId id) {
  const TensorId value = record_.value(id, Tier::device);
  if (value.valid() && !record_.holds(value, Tier::host) && !may_drop(value) &&
      (needed(value) || pending_[value.index()] > 0)) {
    const std::int64_t begin = cache_.address(key(id)).count();
    copy_out(id);
    set_ready_time(begin, begin + size(id).count(), clock_.free[Lane::out]);
  }
  record_.close(id, Tier::device);
  cache_.erase(key(id));
  pool_.release(nodes_[id.index()]);
}

void VirtualRuntime::copy_out(StorageId id) {
  if (!facts_.rests(id)) {
    if (record_.has(id, Tier::host)) record_.close(id, Tier::host);  // an older value
    record_.open(id, Tier::host);
  }
  record_.copy(id, Tier::device, Tier::host);
  clock_.free[Lane::out] = std::max(clock_.free[Lane::out], clock_.device_ready[id.index()]) +
                           cost_.copy_seconds(step_.storage(id).bytes, Tier::device, Tier::host);
  clock_.host_ready[id.index()] = clock_.free[Lane::out];
}

void VirtualRuntime::copy_in(StorageId id) {
  const std::int64_t begin = cache_.address(key(id)).count();
  record_.copy(id, Tier::host, Tier::device);
  clock_.free[Lane::in] = std::max({clock_.free[Lane::in], clock_.host_ready[id.index()],
                                    ready_time(begin, begin + size(id).count()), clock_.free[Lane::compute]}) +
                          fetch_seconds(id);
  clock_.device_ready[id.index()] = clock_.free[Lane::in];
}

void VirtualRuntime::evict_all() {
  const std::vector<TensorCache::Key> keys = cache_.keys();
  for (const TensorCache::Key victim : keys) evict(StorageId(victim));
}

void VirtualRuntime::update_rank(StorageId id) {
  const TensorId value = record_.value(id, Tier::device);
  cache_.set_next_use(key(id), value.valid() ? facts_.next_use(value, done_) : kNever);
}

}  // namespace tide
