// What users name as MODEL: a network of the zoo, a network file, or a file of another framework.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "network/network.h"
#include "network/weight_name.h"

namespace tide {

struct ModelRequest {
  std::string model;                 // "resnet50@10", "net.json", "net.onnx"
  std::optional<Shape> sample = {};  // instead of the model's own input (batch 1)
  // Where a file has none: "cross-entropy", "binary-cross-entropy", "mean-squared-error", or "" for none.
  std::string loss = "cross-entropy";
};

struct Model {
  NetworkPtr network;
  std::vector<WeightName> names;                     // as PyTorch, or the file, calls its parameters; may be empty
  std::map<std::string, std::vector<float>> values;  // by parameter: those that the file brought along
  std::vector<std::string> notes;                    // for people, one line each
};

[[nodiscard]] Model load_model(const ModelRequest& request);

}  // namespace tide
