#include "executor/lanes.h"

#include <algorithm>
#include <system_error>

#include "executor/link.h"

namespace tide {
namespace {

constexpr std::uint32_t kStopped = ~std::uint32_t{0};  // as `done` it ends every wait

// Sequentially consistent on purpose: a notification looks whether anybody waits, and must not
// do so before the value is out.
void publish(std::atomic<std::uint32_t>& counter, std::uint32_t value) {
  counter.store(value, std::memory_order_seq_cst);
  counter.notify_all();
}

// Spins for a moment, then sleeps.
void wait_until(const std::atomic<std::uint32_t>& counter, std::uint32_t target) {
  for (std::uint32_t value = counter.load(); value < target; value = counter.load()) counter.wait(value);
}

}  // namespace

Lanes::Lanes(const Phase& phase, std::function<void(std::size_t)> run) : run_(std::move(run)) {
  resolve(phase);
  start_threads();
}

Lanes::~Lanes() { stop_threads(); }

void Lanes::resolve(const Phase& phase) {
  using Counts = PerLane<std::uint32_t>;
  std::vector<std::uint32_t> position(phase.ops.size());  // of an op in its lane, from 1
  PerLane<Counts> known;                                  // by lane: what it has waited for before
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const Op& op = phase.ops[i];
    const Lane own = op.lane;
    LaneState& lane = lanes_[own];
    Counts needed;
    for (const std::int32_t wait : op.waits) {
      const auto index = static_cast<std::size_t>(wait);
      std::uint32_t& count = needed[phase.ops[index].lane];
      count = std::max(count, position[index]);
    }
    Item item{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(lane.waits.size()), 0};
    for (const Lane other : kLaneTable) {
      if (other == own || needed[other] <= known[own][other]) continue;
      known[own][other] = needed[other];
      lane.waits.push_back({other, needed[other]});
      ++item.wait_count;
    }
    lane.items.push_back(item);
    position[i] = static_cast<std::uint32_t>(lane.items.size());
  }
}

void Lanes::start_threads() {
  try {
    for (const Lane lane : kLaneTable)
      if (lane != Lane::compute && !lanes_[lane].items.empty())
        lanes_[lane].thread = std::thread([this, lane] { serve(lane); });
  } catch (const std::system_error& error) {
    stop_threads();
    throw Error("no thread can be started for copies: {}", error.what());
  }
}

void Lanes::stop_threads() noexcept {
  quit_.store(true);
  publish(step_, step_.load() + 1);
  for (LaneState& lane : lanes_)
    if (lane.thread.joinable()) lane.thread.join();
}

void Lanes::serve(Lane index) {
  run_promptly();
  LaneState& lane = lanes_[index];
  for (std::uint32_t seen = 0;;) {
    step_.wait(seen);
    seen = step_.load();
    if (quit_.load()) return;
    run_lane(lane);
    publish(lane.finished, seen);
  }
}

bool Lanes::wait_for(const Item& item, const LaneState& lane) {
  for (std::uint32_t w = item.first_wait; w < item.first_wait + item.wait_count; ++w)
    wait_until(lanes_[lane.waits[w].lane].done, lane.waits[w].count);
  return !stop_.load(std::memory_order_relaxed);
}

void Lanes::run_lane(LaneState& lane) {
  std::uint32_t done = 0;
  for (const Item& item : lane.items) {
    if (!wait_for(item, lane)) return publish(lane.done, kStopped);
    try {
      run_(item.op);
    } catch (...) {
      if (!stop_.exchange(true)) outcome_ = {item.op, std::current_exception()};
      return publish(lane.done, kStopped);
    }
    publish(lane.done, ++done);
  }
}

Lanes::Outcome Lanes::run_step() {
  // All other lanes are parked: nobody looks at these until the step begins.
  stop_.store(false, std::memory_order_relaxed);
  outcome_ = {};
  for (LaneState& lane : lanes_) lane.done.store(0, std::memory_order_relaxed);
  const std::uint32_t step = step_.load() + 1;
  publish(step_, step);
  run_lane(lanes_[Lane::compute]);
  for (const LaneState& lane : lanes_)
    if (lane.thread.joinable())
      while (lane.finished.load() != step) lane.finished.wait(step - 1);
  return std::exchange(outcome_, {});
}

}  // namespace tide
