#include "models/model.h"

#include <algorithm>

#include "base/error.h"
#include "base/mapped_file.h"
#include "foreign/lower.h"
#include "formats/network_json.h"
#include "formats/onnx/onnx.h"
#include "network/reordered.h"
#include "zoo/weight_names.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

std::string extents_text(const Shape& sample) {
  const auto extents = sample.extents();
  return fmt::format("{}", fmt::join(extents.begin() + 1, extents.end(), "x"));
}

Model model_of_onnx(const ModelRequest& request) {
  const ForeignGraph graph = read_onnx(request.model);
  ImportOptions options;
  options.loss = request.loss;
  if (request.sample) options.input = extents_text(*request.sample);
  ImportedNetwork imported;
  try {
    imported = import_graph(graph, options);
  } catch (const std::exception& error) {
    throw Error("{}: {}", request.model, error.what());
  }
  Model model{imported.network, imported.weights, {}, std::move(imported.notes)};
  for (const WeightName& weight : imported.weights) {
    const auto constant = graph.constants.find(weight.array);
    const ForeignTensor& array = constant != graph.constants.end() ? constant->second : imported.made.at(weight.array);
    const std::vector<float> values = values_of(array);
    model.values[weight.parameter] = to_parameter_order(weight, std::span<const float>(values));
  }
  return model;
}

Model model_of_network_file(const ModelRequest& request) {
  if (request.sample) throw Error("--input does not go with a network file: the file has its own input");
  return {std::make_shared<const Network>(read_network(request.model)), {}, {}, {}};
}

// A file by what it holds, where its name does not say.
bool is_onnx(const std::string& path) {
  if (path.ends_with(".onnx")) return true;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  return looks_like_onnx(MappedFile(path).bytes());
}

}  // namespace

Model load_model(const ModelRequest& request) {
  const std::string& name = request.model;
  if (name.ends_with(".json")) return model_of_network_file(request);
  for (const std::string_view ending : {".pt", ".pth", ".bin", ".safetensors"})
    if (name.ends_with(ending))
      throw Error("{} holds weights, not a network; name the model, and give weights as --weights FILE.safetensors",
                  name);
  if (is_onnx(name)) return model_of_onnx(request);
  Network network = make_model(name, request.sample);
  const std::vector<WeightNames> known = weight_names(network, name);
  return {std::make_shared<const Network>(std::move(network)),
          known.empty() ? std::vector<WeightName>{} : known.front().names,
          {},
          {}};
}

}  // namespace tide
