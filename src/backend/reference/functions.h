// Functions of one value and their slopes, in double precision.
#pragma once

#include "network/options.h"

namespace tide::reference {

[[nodiscard]] double activate(const ActivationOptions& options, double x);
[[nodiscard]] double activation_slope(const ActivationOptions& options, double x);

// What a batch norm does to its result.
[[nodiscard]] double apply_fused(const BatchNormOptions& options, double x);
[[nodiscard]] double fused_slope(const BatchNormOptions& options, double x);

}  // namespace tide::reference
