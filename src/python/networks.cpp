// Networks: from the zoo, files, layers and graphs; changed for training; summed up.
#include <filesystem>

#include "foreign_graph.h"
#include "named_network.h"

namespace tide::python {
namespace {

std::optional<Shape> sample_of(const std::optional<std::vector<std::int64_t>>& input) {
  if (!input || input->empty()) return std::nullopt;
  std::vector<std::int64_t> extents{1};
  extents.insert(extents.end(), input->begin(), input->end());
  for (const std::int64_t extent : extents)
    if (extent < 1) throw Error("input {} is not a shape; give channels, height and width", extents_text(*input));
  return Shape(extents);
}

ModelRequest request_of(const std::string& model, const std::optional<std::vector<std::int64_t>>& input,
                        const std::string& loss) {
  return {.model = model, .sample = sample_of(input), .loss = loss};
}

NamedNetwork zoo(const std::string& name, const std::optional<std::vector<std::int64_t>>& input) {
  return NamedNetwork(std::make_shared<const Network>(make_model(name, sample_of(input))));
}

nb::list models_list() {
  nb::list result;
  for (const ModelInfo& info : models()) {
    nb::dict row;
    row["name"] = info.name;
    row["description"] = info.description;
    const std::vector<std::int64_t> extents = extents_of(info.sample);
    row["input"] = nb::tuple(nb::cast(std::vector<std::int64_t>(extents.begin() + 1, extents.end())));
    row["classes"] = info.classes;
    result.append(row);
  }
  return result;
}

nb::tuple sample_shape(const NamedNetwork& network) {
  const std::vector<std::int64_t> extents = extents_of(network.network()->input_sample());
  return nb::tuple(nb::cast(std::vector<std::int64_t>(extents.begin() + 1, extents.end())));
}

nb::list weight_names_list(const NamedNetwork& network) {
  nb::list result;
  for (const NamedArray& array : network.arrays()) {
    const Parameter& parameter = network.network()->parameters[array.id.index()];
    const bool statistic =
        parameter.role == ParameterRole::running_mean || parameter.role == ParameterRole::running_variance;
    nb::dict row;
    row["parameter"] = array.name.parameter;
    row["array"] = array.name.array;
    row["shape"] = nb::tuple(nb::cast(array.shape));
    row["trained"] = !parameter.frozen && !statistic;
    row["statistic"] = statistic;
    row["rate"] = parameter.rate;
    row["decay"] = parameter.decay;
    result.append(row);
  }
  return result;
}

nb::list targets_list(const NamedNetwork& network) {
  nb::list result;
  for (const ForeignTarget& target : network.targets()) {
    nb::dict row;
    row["loss"] = target.loss;
    row["input"] = target.input;
    result.append(row);
  }
  return result;
}

// What each loss takes of a sample's labels, in the order in which they stand there.
nb::list losses_list(const NamedNetwork& network) {
  nb::list result;
  const Network& all = *network.network();
  std::size_t next = 0;
  const std::vector<LossLabels> labels = loss_labels(all);
  for (const Layer& layer : all.layers) {
    if (!is_loss(layer)) continue;
    const LossLabels& loss = labels[next++];
    nb::dict row;
    row["layer"] = layer.name;
    row["kind"] = std::string(kind_name(layer.kind));
    row["offset"] = loss.offset;
    row["labels"] = loss.counted ? loss.count - 1 : loss.count;
    row["floats"] = loss.floats;
    row["classes"] = loss.classes;
    row["weight"] = loss.weight;
    result.append(row);
  }
  return result;
}

nb::list layers_list(const NamedNetwork& network, std::int64_t batch) {
  const Network& all = *network.network();
  const Step step = build_step(network.network(), {.batch = batch, .rules = Rules::minimal, .training = false});
  std::vector<double> flops(all.layers.size(), 0);
  for (std::uint32_t t = 0; t < step.ordered_tasks; ++t)
    flops[step.tasks[t].layer.index()] += work_of(step, TaskId(t)).flops;
  nb::list result;
  for (std::size_t l = 0; l < all.layers.size(); ++l) {
    const Layer& layer = all.layers[l];
    Bytes bytes;
    for (const Shape& shape : layer.outputs) bytes += bytes_of(shape.with_batch(batch), DataType::f32);
    std::int64_t parameters = 0;
    for (const LayerParameter& used : layer.parameters)
      parameters = checked_add(parameters, all.parameters[used.id.index()].shape.elements());
    nb::list inputs;
    for (const Value& input : layer.inputs)
      inputs.append(input.output == 0 ? all.layer(input.layer).name
                                      : fmt::format("{}:{}", all.layer(input.layer).name, input.output));
    nb::dict row;
    row["name"] = layer.name;
    row["kind"] = std::string(kind_name(layer.kind));
    row["inputs"] = inputs;
    row["output"] = sample_text(layer.outputs[0]);
    row["outputs"] = layer.outputs.size();
    row["output_bytes"] = bytes.count();
    row["parameters"] = parameters;
    row["forward_flops"] = flops[l];
    row["frozen"] = layer.frozen;
    result.append(row);
  }
  return result;
}

NamedNetwork adapt_network(const NamedNetwork& network, const std::vector<std::string>& freeze,
                           const std::map<std::string, double>& rates, bool decay_weights_only, double label_smoothing,
                           bool soft_labels, bool gaps_in_labels) {
  AdaptOptions options{.freeze = freeze,
                       .rates = {},
                       .decay_weights_only = decay_weights_only,
                       .label_smoothing = label_smoothing,
                       .soft_labels = soft_labels,
                       .gaps_in_labels = gaps_in_labels};
  for (const auto& [layers, factor] : rates) options.rates.push_back({layers, factor});
  return network.with(adapt(network.network(), options));
}

// Factors of single arrays, by the user's names.
NamedNetwork with_parameters(const NamedNetwork& network, const nb::dict& parameters) {
  auto changed = std::make_shared<Network>(*network.network());
  for (const auto& [key, given] : parameters) {
    const auto name = nb::cast<std::string>(key);
    Parameter& parameter = changed->parameters[network.array(name).id.index()];
    for (const auto& [word, value] : nb::cast<nb::dict>(given)) {
      const auto factor = nb::cast<std::string>(word);
      if (factor == "trained") {
        parameter.frozen = !nb::cast<bool>(value);
        continue;
      }
      const auto number = nb::cast<double>(value);
      if (!(number >= 0)) throw Error("array '{}': {} {} is not a number from 0 on", name, factor, number);
      if (factor == "rate")
        parameter.rate = number;
      else if (factor == "decay")
        parameter.decay = number;
      else
        throw Error("array '{}': there is no '{}'; there are rate, decay and trained", name, factor);
    }
  }
  // A layer none of whose parameters is trained is frozen as a whole, so that nothing is kept for it.
  for (Layer& layer : changed->layers) {
    if (layer.parameters.empty()) continue;
    bool any = false;
    for (const LayerParameter& used : layer.parameters) any = any || !changed->parameters[used.id.index()].frozen;
    layer.frozen = !any;
    if (!any) continue;
    for (const LayerParameter& used : layer.parameters)
      if (changed->parameters[used.id.index()].frozen)
        throw Error("layer '{}': a part of its parameters is trained, and a part is not; give '{}' the rate 0 instead",
                    layer.name, changed->parameters[used.id.index()].name);
  }
  return network.with(std::move(changed));
}

void save_network(const NamedNetwork& network, const std::string& path) {
  if (std::filesystem::path(path).extension() != ".json")
    throw Error("{}: networks are written as network files; call it .json", path);
  write_network(*network.network(), path);
}

}  // namespace

void bind_networks(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<NamedNetwork>(module, "Network", "A network: layers, names and starting values of its arrays. Immutable.")
      .def_prop_ro("name", [](const NamedNetwork& self) { return self.network()->name; })
      .def_prop_ro("input", &sample_shape, nb::sig("def input(self) -> tuple[int, ...]"),
                   "Extents of one sample: channels, height, width.")
      .def_prop_ro("classes", [](const NamedNetwork& self) { return self.network()->classes(); })
      .def_prop_ro(
          "parameters", [](const NamedNetwork& self) { return self.network()->parameter_count(); },
          "How many numbers are trained.")
      .def_prop_ro("has_loss", [](const NamedNetwork& self) { return self.network()->has_loss(); })
      .def_prop_ro("labels_per_sample", [](const NamedNetwork& self) { return self.network()->labels_of_data(); })
      .def_prop_ro("losses", &losses_list, nb::sig("def losses(self) -> list[dict]"),
                   "What each loss takes of a sample's labels.")
      .def_prop_ro("notes", &NamedNetwork::notes, "What was changed on import, one line each.")
      .def_prop_ro("targets", &targets_list, nb::sig("def targets(self) -> list[dict[str, str]]"),
                   "Which input of the graph each loss compares with.")
      .def_prop_ro("weight_names", &weight_names_list, nb::sig("def weight_names(self) -> list[dict]"),
                   "Its arrays: parameter, array, shape, trained, statistic, rate, decay.")
      .def_prop_ro("fingerprint", [](const NamedNetwork& self) { return self.network()->fingerprint(); })
      .def("layers", &layers_list, "batch"_a = 1, nb::sig("def layers(self, batch: int = 1) -> list[dict]"),
           "Its layers: name, kind, inputs, output, bytes, parameters, flops.")
      .def("adapt", &adapt_network, nb::kw_only(), "freeze"_a = std::vector<std::string>(),
           "rates"_a = std::map<std::string, double>(), "decay_weights_only"_a = false, "label_smoothing"_a = 0.0,
           "soft_labels"_a = false, "gaps_in_labels"_a = false,
           "The same network, trained in another way: layers whose names begin with one of `freeze` are not trained, "
           "those of `rates` at another rate. `soft_labels`: labels are the probabilities of all classes. "
           "`gaps_in_labels`: labels that are no class do not count.")
      .def("with_parameters", &with_parameters, "parameters"_a,
           nb::sig("def with_parameters(self, parameters: dict[str, dict[str, float]]) -> Network"),
           "The same for single arrays, by name: {'rate': factor, 'decay': factor, 'trained': bool}.")
      .def("with_weights", &NamedNetwork::with_weights, "file"_a,
           "The same network, which begins with the weights of a safetensors file.")
      .def("save", &save_network, "path"_a, "Writes a network file (.json), without weights.")
      .def("to_json", [](const NamedNetwork& self) { return format_network(*self.network()); })
      .def("__repr__", [](const NamedNetwork& self) {
        return fmt::format("<tidepool.Network {}: {} layers, {} parameters>", self.network()->name,
                           self.network()->layers.size(), self.network()->parameter_count());
      });
  module.def("zoo", &zoo, "name"_a, "input"_a = nb::none());
  module.def("models", &models_list, nb::sig("def models() -> list[dict]"));
  module.def(
      "load",
      [](const std::string& model, const std::optional<std::vector<std::int64_t>>& input, const std::string& loss,
         const std::string& weights) { return NamedNetwork::load(request_of(model, input, loss), weights); },
      "model"_a, "input"_a = nb::none(), "loss"_a = "cross-entropy", "weights"_a = "");
  module.def(
      "parse_network",
      [](const std::string& text, const std::string& source) {
        return NamedNetwork(std::make_shared<const Network>(parse_network(text, source)));
      },
      "text"_a, "source"_a = "network");
  module.def(
      "import_graph",
      [](const nb::dict& graph, const std::string& loss, const std::string& input) {
        ImportOptions options;
        options.loss = loss;
        options.input = input;
        return NamedNetwork::import(graph_of(graph), options);
      },
      "graph"_a, "loss"_a = "", "input"_a = "",
      "A graph of another framework, in ONNX's words, as a network; arrays are not copied until a session begins.");
}

}  // namespace tide::python
