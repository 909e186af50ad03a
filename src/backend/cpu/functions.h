// What batch norms do to their results, for the loops of batch_norm_rows.h.
#pragma once

#include <cstdint>

#include "network/options.h"

namespace tide::cpu {

// In place; nothing for none and relu.
void apply_fused(const BatchNormOptions& options, float* values, std::int64_t count);
// gradient *= the slope at `from`: what the function was made of; of relu and clip, its result will do too.
void multiply_by_fused_slope(const BatchNormOptions& options, const float* from, float* gradient, std::int64_t count);

}  // namespace tide::cpu
