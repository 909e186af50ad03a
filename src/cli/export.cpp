// tide export: a network and its weights as files that others read.
#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "cli/options.h"
#include "foreign/raise.h"
#include "formats/network_json.h"
#include "formats/onnx/onnx.h"
#include "models/weights.h"
#include "train/checkpoint.h"
#include "train/initialize.h"

namespace tide {
namespace {

struct ExportArguments {
  ModelArguments model;
  std::string to, checkpoint;
  std::uint64_t seed = defaults().seed;
};

// Of every parameter: the checkpoint's, else what the model came with, else what training would begin with.
std::map<std::string, std::vector<float>> values_of(const ExportArguments& arguments, const Model& model) {
  const Network& network = *model.network;
  std::map<std::string, std::vector<float>> values = model.values;
  if (!arguments.checkpoint.empty()) {
    Checkpoint checkpoint = load_checkpoint(arguments.checkpoint);
    std::map<std::string, NamedTensor*> tensors;
    for (NamedTensor& tensor : checkpoint.tensors) tensors[tensor.name] = &tensor;
    for (const Parameter& parameter : network.parameters) {
      const auto found = tensors.find(parameter.name);
      if (found == tensors.end() ||
          static_cast<std::int64_t>(found->second->values.size()) != parameter.shape.elements())
        throw Error("{}: has no '{}' of {}; give the model that it is a checkpoint of (it says {})",
                    arguments.checkpoint, parameter.name, network.name, checkpoint.model);
      values[parameter.name] = std::move(found->second->values);
    }
  }
  for (std::size_t p = 0; p < network.parameters.size(); ++p)
    if (!values.contains(network.parameters[p].name))
      values[network.parameters[p].name] = initial_values(network, ParameterId(p), arguments.seed);
  return values;
}

int run(const ExportArguments& arguments) {
  const std::filesystem::path to = arguments.to;
  const std::string ending = to.extension().string();
  if (ending != ".json" && ending != ".onnx" && ending != ".safetensors")
    throw Error("--to {}: name a network file (net.json), an ONNX file (net.onnx) or weights (net.safetensors)",
                arguments.to);
  const bool weighted = !arguments.checkpoint.empty() || !arguments.model.weights.empty();
  if (ending == ".json" && weighted)
    throw Error("a network file holds no weights; leave out --resume and --weights, or export to .safetensors as well");
  const Model model = arguments.model.open();
  std::vector<std::string> notes = model.notes;
  if (ending == ".json") {
    write_network(*model.network, to);
  } else {
    const auto values = values_of(arguments, model);
    if (!weighted && model.values.empty())
      notes.push_back(
          "the weights are those that training begins with; give --resume FILE or --weights FILE for others");
    if (ending == ".safetensors") {
      save_weights(*model.network, model.names, values, to);
    } else {
      RaisedGraph raised = raise_graph(model.network, model.names, values);
      write_onnx(raised.graph, to);
      notes.insert(notes.end(), raised.notes.begin(), raised.notes.end());
    }
  }
  for (const std::string& note : notes) fmt::print(stderr, "tide: {}\n", note);
  fmt::print("{} written\n", arguments.to);
  return kDone;
}

}  // namespace

Command export_command(CLI::App& root) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* app = root.add_subcommand("export", "A network as a network file or an ONNX file, or its weights");
  arguments->model.add_to(*app);
  arguments->model.add_weights_to(*app);
  app->add_option("--to", arguments->to,
                  "net.json, net.onnx (with weights) or weights.safetensors (by PyTorch's names)")
      ->required();
  app->add_option("--resume", arguments->checkpoint, "The weights of this checkpoint (tide train --save)");
  app->add_option("--seed", arguments->seed, "Of the weights that training would begin with")->capture_default_str();
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
