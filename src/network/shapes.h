// Shape inference: the outputs of a layer from the shapes of its inputs.
#pragma once

#include <vector>

#include "network/layer.h"

namespace tide {

// Throws an Error that names the layer where the options or the inputs do not fit.
[[nodiscard]] std::vector<Shape> infer_shapes(const Layer& layer, const std::vector<Shape>& inputs);

}  // namespace tide
