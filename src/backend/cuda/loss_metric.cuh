// What losses share: the metric as sums of blocks, merged in their order, and the scale of gradients.
#pragma once

#include "backend/cuda/device_state.h"
#include "backend/cuda/launch_grid.cuh"

namespace tide::cuda {

struct LossMetric {
  double loss, correct;
};

// metric = (or +=) the sum of `count` partial ones.
[[nodiscard]] cudaError_t launch_merge_metric(cudaStream_t stream, const LossMetric* partial, std::int64_t count,
                                              float* metric, bool adds);

// As gradient_scale() of the host.
__device__ inline double gradient_scale_of(const DeviceState& state, double weight, std::int64_t positions) {
  return state.global_batch > 0 ? weight / static_cast<double>(state.global_batch * positions) : 0;
}

}  // namespace tide::cuda
