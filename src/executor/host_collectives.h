// Sums over ranks that the processor makes, whatever the device: what is on a device that the host cannot address goes
// through host memory.
#pragma once

#include "backend/collectives.h"
#include "cluster/communicator.h"

namespace tide {

struct HostCollectiveOptions {
  DataType wire = DataType::f32;  // or bf16: sums are rounded, for half the traffic
  bool tree = false;              // sums of floats follow one binary tree over the ranks
};

// Both outlive what is returned, which outlives its kernels.
[[nodiscard]] std::unique_ptr<Collectives> make_host_collectives(Communicator& communicator, Backend& backend,
                                                                 const HostCollectiveOptions& options = {});

}  // namespace tide
