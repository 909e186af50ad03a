// What networks for small devices are made of. Layers are called as the modules of torchvision's models are, so that
// their weights have the same names (weight_names.h).
#pragma once

#include <optional>
#include <string>

#include "network/builder.h"

namespace tide {

// Rounded to a multiple of `divisor`, but by no more than a tenth downwards.
[[nodiscard]] std::int64_t made_divisible(double channels, std::int64_t divisor = 8);

struct NormalizedOptions {
  std::int64_t channels = 0;
  std::int64_t kernel = 1, stride = 1, dilation = 1;
  std::int64_t groups = 1;
  std::optional<ActivationOptions> function = {};  // none: as it is
  bool relu = false;                               // instead
  BatchNormOptions norm = {};
};
// A convolution without a bias, "CONVOLUTION", a batch norm, "NORM", and its function. Padded so that a stride of 1
// keeps the extents.
Value normalized(Builder& net, Value x, const NormalizedOptions& options, const std::string& convolution,
                 const std::string& norm);
// The same of "NAME.0" and "NAME.1".
Value normalized(Builder& net, Value x, const NormalizedOptions& options, const std::string& name);

// Squeeze and excitation: x times a gate for each of its channels, made of their means by "NAME.fc1" and "NAME.fc2".
struct GateOptions {
  std::int64_t squeezed = 0;                       // channels between the two
  std::optional<ActivationOptions> function = {};  // between them; none: relu
  std::optional<ActivationOptions> gate = {};      // behind them; none: a sigmoid
};
Value gated(Builder& net, Value x, const GateOptions& options, const std::string& name);

}  // namespace tide
