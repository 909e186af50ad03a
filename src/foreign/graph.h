// A network as another framework wrote it down: operators over named values, and arrays by name. The
// words are those of ONNX (operators, attributes, their defaults), whichever road it came over; what
// only training needs and ONNX has no word for is listed below. lower.h makes layers of it.
//
// Beyond ONNX, domain "tidepool":
//   Dropout        rate                     of single values
//   DropPath       rate, per_channel        of whole samples, or of whole channels of samples
//   Silu           -                        x * sigmoid(x)
//   AdaptiveAveragePool  output_size        height and width, or one number for both
//   CrossEntropy   x, target; label_smoothing, ignore_index, weight    mean over all; with ignore_index over the others
//   BinaryCrossEntropyWithLogits  x, target; weight                    mean over all
//   MeanSquaredError              x, target; weight                    mean over all
// BatchNormalization has training_mode 1 where it normalizes with the batch, as in ONNX. Where at least one of a graph
// does, or the graph says that it is written for training, those without keep their running statistics in training,
// too; else the graph was written for evaluation, and all of them normalize with the batch in training.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace tide {

enum class ForeignType : std::uint8_t { f32, f64, f16, bf16, i64, i32, i16, i8, u8, boolean };

// Values in row-major order. `bytes` are kept alive by `owner`: a file that is mapped, an array of Python.
struct ForeignTensor {
  ForeignType type = ForeignType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

using ForeignAttribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                                      std::vector<std::string>, ForeignTensor>;

struct ForeignNode {
  std::string op;
  std::string domain;                        // empty: ONNX's own
  std::string name;                          // of the layer that it becomes; may be empty
  std::vector<std::string> inputs, outputs;  // values; an empty input is left out
  std::map<std::string, ForeignAttribute> attributes;
  std::string place;  // for messages: "model.py:31, in forward: x = self.pool(x)"
};

struct ForeignInput {
  std::string name;
  ForeignType type = ForeignType::f32;
  std::vector<std::int64_t> shape;  // -1: not fixed; the first one is the batch
};

struct ForeignGraph {
  std::string name;
  std::int64_t opset = 20;
  std::vector<ForeignInput> inputs;  // batches: the samples, and targets of losses
  std::vector<std::string> outputs;
  std::vector<ForeignNode> nodes;  // each behind those that make its inputs
  // Weights, buffers and other constants. Names are the user's: "layer1.0.bn1.running_mean".
  std::map<std::string, ForeignTensor> constants;
  std::vector<std::string> frozen;  // of the constants: not to be trained (requires_grad is false)
  bool training = false;            // written for training, whatever its batch norms say
  bool merged = false;              // constants that are equal may be one, as exporters write them into files
  // Of outputs, as of inputs, where they are known: files say them, nobody reads them here.
  std::map<std::string, std::vector<std::int64_t>> output_shapes;
};

}  // namespace tide
