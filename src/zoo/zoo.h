// The built-in models, by name. A name may end in "@N" for N classes: "resnet50@10".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "network/network.h"

namespace tide {

struct ModelInfo {
  std::string name;         // "vgg16", or with letters for numbers: "resnet:A,B,C,D"
  std::string description;  // one line
  Shape sample;             // the default input
  std::int64_t classes = 0;
};

[[nodiscard]] std::vector<ModelInfo> models();

// `sample` replaces the default input (batch 1). Throws an Error that suggests the nearest
// names for an unknown one, and names the layer where the sample does not fit the model.
[[nodiscard]] Network make_model(std::string_view name, std::optional<Shape> sample = {});

}  // namespace tide
