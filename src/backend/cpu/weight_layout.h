// How the weights of a layer lie in memory. A function of the layer alone, never of the
// batch: steps of several sizes share the same weights.
#pragma once

#include <dnnl.hpp>
#include <vector>

#include "network/network.h"

namespace tide::cpu {

struct WeightLayout {
  dnnl::memory::desc logical;           // Tidepool's order
  dnnl::memory::desc stored;            // the order that forward prefers
  std::vector<std::int64_t> signature;  // what `stored` depends on
};

// REQUIRES: the layer is a convolution, a transposed convolution or fully connected.
[[nodiscard]] std::vector<std::int64_t> weight_signature(const Layer& layer, const Shape& input_sample);
[[nodiscard]] WeightLayout make_weight_layout(const Layer& layer, const Shape& input_sample,
                                              const dnnl::engine& engine);

}  // namespace tide::cpu
