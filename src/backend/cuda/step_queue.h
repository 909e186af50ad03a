#pragma once

#include "backend/cuda/context.h"

namespace tide::cuda {

// A step as one CUDA graph.
[[nodiscard]] std::unique_ptr<StepQueue> make_step_queue(ContextPtr context, bool record_times);

}  // namespace tide::cuda
