// What changes from step to step, at one address in device memory: kernels read it there, so
// that a recorded step can be launched again with other values.
#pragma once

#include <cstdint>

namespace tide::cuda {

struct DeviceState {
  std::uint64_t seed, step;
  std::int64_t first_sample, global_batch, update_count;
  double learning_rate;
};

}  // namespace tide::cuda
