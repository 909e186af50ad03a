// The streams of a cuda backend, for libraries that enqueue on them by themselves.
#pragma once

#include <cuda_runtime_api.h>

#include "backend/backend.h"

namespace tide::cuda {

class LaneStream {
 public:
  LaneStream(cudaStream_t lane, cudaStream_t compute) : lane_(lane), compute_(compute) {}
  [[nodiscard]] cudaStream_t get() const { return lane_; }
  [[nodiscard]] cudaStream_t compute() const { return compute_; }

 private:
  cudaStream_t lane_, compute_;
};

// REQUIRES: a cuda backend, which outlives it.
[[nodiscard]] LaneStream stream_of(const Backend& backend, Lane lane);
// What is enqueued from here on comes behind all that the compute lane has so far.
void follow_compute(const LaneStream& stream);
void synchronize(const LaneStream& stream);

}  // namespace tide::cuda
