// Room on the device: who leaves, and what that delays.
#include <algorithm>
#include <tuple>

#include "planner/modnn/schedule.h"

namespace tide {

// `horizon`: what is used up to there stays.
bool ModnnSchedule::may_leave(StorageId id, Leaving leaving, std::int32_t horizon) const {
  if (in_use(id) || next_[id.index()] <= horizon) return false;
  return leaving == Leaving::anything || (used_[id.index()] && is_data(step_.storage(id).tensor_class));
}

ModnnSchedule::Scheme ModnnSchedule::judge(const MemoryList::Range& range, double start) const {
  Scheme scheme;
  scheme.address = range.address;
  scheme.bytes = range.bytes;
  scheme.ready = range.ready;
  scheme.next = kNever;
  double out = free(Lane::out), later = 0;
  for (const StorageId id : range.blocks) {
    scheme.ready = std::max(scheme.ready, clock_.device_ready[id.index()]);
    if (!record_.holds(record_.value(id, Tier::device), Tier::host)) {
      out = std::max(out, clock_.device_ready[id.index()]) + copy_seconds(id);
      scheme.ready = std::max(scheme.ready, out);
      scheme.copied += size(id).count();
    }
    scheme.next = std::min(scheme.next, next_[id.index()]);
    later += std::max(0.0, copy_seconds(id) - until(next_[id.index()]));
  }
  scheme.delay = std::max(0.0, scheme.ready - start) + later;
  return scheme;
}

std::optional<MemoryList::Place> ModnnSchedule::find_place(Bytes bytes, MemoryList::End end, double now,
                                                           MemoryList::Fit fit) const {
  if (bytes.count() > room()) return std::nullopt;
  return memory_.find_free(bytes, end, now, fit);
}

// Blocks that need not be neighbours, one after the other as long as there is too little room.
std::optional<ModnnSchedule::Scheme> ModnnSchedule::find_leavers(Bytes bytes, Leaving leaving, std::int32_t horizon,
                                                                 double start) const {
  const auto place = memory_.find_free(bytes, MemoryList::End::low, start);
  if (!place) return std::nullopt;
  std::vector<std::pair<std::tuple<double, double, std::int64_t>, StorageId>> blocks;
  for (const MemoryList::Segment& segment : memory_.segments()) {
    if (!segment.block.valid() || !may_leave(segment.block, leaving, horizon)) continue;
    const Scheme alone = judge({Bytes(segment.begin), Bytes(segment.bytes), std::span(&segment.block, 1)}, start);
    blocks.push_back({{alone.delay, alone.ready, alone.copied}, segment.block});
  }
  std::sort(blocks.begin(), blocks.end());
  std::vector<StorageId> chosen;
  std::int64_t left = room();
  for (std::size_t k = 0; k < blocks.size() && left < bytes.count(); ++k) {
    chosen.push_back(blocks[k].second);
    left += size(blocks[k].second).count();
  }
  if (left < bytes.count()) return std::nullopt;
  Scheme scheme = judge({place->address, bytes, chosen}, start);
  scheme.blocks = std::move(chosen);
  return scheme;
}

std::optional<ModnnSchedule::Scheme> ModnnSchedule::find_scheme(Bytes bytes, Leaving leaving, std::int32_t horizon,
                                                                double start) const {
  if (guess_.packed_later) return find_leavers(bytes, leaving, horizon, start);
  return memory_.best_scheme(
      bytes, [&](StorageId id) { return may_leave(id, leaving, horizon); },
      [&](const MemoryList::Range& range) { return judge(range, start); });
}

// What stays until the backward pass lies at the bottom and is given up from there.
MemoryList::End ModnnSchedule::end_for(StorageId id) const {
  const bool activation = step_.storage(id).tensor_class == TensorClass::activation;
  const bool low =
      !guess_.two_ends || (activation && (position_ < facts_.first_backward() || record_.has(id, Tier::host)));
  return low ? MemoryList::End::low : MemoryList::End::high;
}

bool ModnnSchedule::allocate(StorageId id, Leaving leaving, std::int32_t horizon, double start) {
  const MemoryList::End end = end_for(id);
  if (const auto place = find_place(size(id), end, start, guess_.fit)) {
    occupy(id, place->address, place->ready);
    return true;
  }
  const std::optional<Scheme> scheme = find_scheme(size(id), leaving, horizon, start);
  if (!scheme) return false;
  for (const StorageId leaver : scheme->blocks) evict(leaver);
  occupy(id, end == MemoryList::End::low ? scheme->address : scheme->address + scheme->bytes - size(id), scheme->ready);
  return true;
}

void ModnnSchedule::occupy(StorageId id, Bytes address, double ready) {
  memory_.take(id, address, size(id));
  record_.open(id, Tier::device, bottom_ + address);
  clock_.device_ready[id.index()] = ready;
}

void ModnnSchedule::evict(StorageId id) {
  const TensorId value = record_.value(id, Tier::device);
  double ready = clock_.device_ready[id.index()];
  if (value.valid()) {
    if (!record_.holds(value, Tier::host)) {
      copy_out(id);
      ready = clock_.free[Lane::out];
    }
    away_.insert({next_[id.index()], id});
  }
  record_.close(id, Tier::device);
  memory_.release(id, ready, now());
}

void ModnnSchedule::copy_out(StorageId id) {
  if (record_.has(id, Tier::host)) record_.close(id, Tier::host);  // an older value
  record_.open(id, Tier::host);
  record_.copy(id, Tier::device, Tier::host);
  clock_.free[Lane::out] = std::max(free(Lane::out), clock_.device_ready[id.index()]) + copy_seconds(id);
  clock_.host_ready[id.index()] = clock_.free[Lane::out];
}

void ModnnSchedule::copy_in(StorageId id) {
  record_.copy(id, Tier::host, Tier::device);
  // Until now, when its place is ready.
  clock_.free[Lane::in] =
      std::max({free(Lane::in), clock_.host_ready[id.index()], clock_.device_ready[id.index()]}) + copy_seconds(id);
  clock_.device_ready[id.index()] = clock_.free[Lane::in];
  used_[id.index()] = false;
  away_.erase({next_[id.index()], id});
}

// For good.
void ModnnSchedule::release(StorageId id) {
  if (record_.has(id, Tier::host)) record_.close(id, Tier::host);
  record_.close(id, Tier::device);
  memory_.release(id, now(), now());
}

}  // namespace tide
