// Several devices, each with a plan of its own, played against one clock. Each has its lanes, as in simulate(); what
// they share is the links of a topology:
//   - a copy is a flow over the links between its device and its host's memory, and no faster than its cost model says;
//   - flows over one link, the same way, share it max-min fairly;
//   - a reduction starts when every rank has come to it, and ends for all together.
// Other time is the cost model's. One device alone takes as long as simulate() says, where the topology's links are
// not slower than the device's own.
//
// Not modelled: what a ring's kernels take of a device's arithmetic and memory, and hosts whose memory is too slow for
// all copies of their devices. Copies between host and disk share nothing.
#pragma once

#include <span>

#include "cost/topology.h"
#include "plan/timeline.h"

namespace tide {

// How a sum over all ranks is made.
enum class ReduceRoad : std::uint8_t {
  // In step around all devices, over the shortest way to the next: of n ranks, each sends and receives 2 (n - 1) / n of
  // the bytes (NCCL's ring).
  ring,
  // Every device sends all to host memory, the host adds at the speed of its memory, every device gets the sum. Several
  // hosts add up what they have around a ring of their own.
  cpu,
};
[[nodiscard]] std::string_view road_name(ReduceRoad road);  // "nccl", "cpu"
[[nodiscard]] ReduceRoad road_from_name(std::string_view name);

// The bytes that a task is about which all ranks do together: what is summed, or what all have of it in the end.
[[nodiscard]] Bytes collective_bytes(const Step& step, TaskId task);

// Rank i has plans[i] on the topology's device i; `costs` is one for each, or one for all.
// Throws an Error that names the ops where the ranks would wait for each other for ever, or come to different sums.
// REQUIRES: each plan passes the checker; as many devices as plans.
[[nodiscard]] std::vector<Timeline> simulate_together(std::span<const Plan* const> plans,
                                                      std::span<const CostModel* const> costs, const Topology& topology,
                                                      ReduceRoad road = ReduceRoad::ring);

// Until the last of them is done.
[[nodiscard]] double seconds_of(std::span<const Timeline> timelines);

}  // namespace tide
