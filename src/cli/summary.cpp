// tide summary: a network layer by layer.
#include <nlohmann/json.hpp>

#include "base/size_text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cost/work.h"
#include "report/table.h"
#include "step/build.h"

namespace tide {
namespace {

struct SummaryArguments {
  ModelArguments model;
  std::int64_t batch = 1;
  bool json = false;
};

std::int64_t parameters_of(const Network& network, const Layer& layer) {
  std::int64_t total = 0;
  for (const LayerParameter& parameter : layer.parameters)
    total = checked_add(total, network.parameters[parameter.id.index()].shape.elements());
  return total;
}

std::string inputs_of(const Network& network, const Layer& layer) {
  std::string text;
  for (const Value& input : layer.inputs)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", network.layer(input.layer).name,
                        input.output == 0 ? "" : fmt::format(":{}", input.output));
  constexpr std::size_t kWidest = 40;
  return text.size() <= kWidest ? text : text.substr(0, kWidest - 3) + "...";
}

int run(const SummaryArguments& arguments) {
  const NetworkPtr network = arguments.model.load();
  const Step step = build_step(network, {arguments.batch, Rules::minimal, false, {}});
  std::vector<double> flops(network->layers.size(), 0);
  double total_flops = 0;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    const double work = work_of(step, TaskId(t)).flops;
    flops[step.tasks[t].layer.index()] += work;
    total_flops += work;
  }
  Table table({{"layer"},
               {"kind"},
               {"from"},
               {"output", Align::right},
               {"bytes", Align::right},
               {"parameters", Align::right},
               {"MFLOP", Align::right}});
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  Bytes activations;
  for (std::size_t l = 0; l < network->layers.size(); ++l) {
    const Layer& layer = network->layers[l];
    Bytes bytes;
    for (const Shape& shape : layer.outputs) bytes += bytes_of(shape.with_batch(arguments.batch), DataType::f32);
    activations += bytes;
    const std::int64_t parameters = parameters_of(*network, layer);
    const std::string output = layer.outputs.size() == 1
                                   ? sample_text(layer.outputs[0])
                                   : fmt::format("{} of {}", layer.outputs.size(), sample_text(layer.outputs[0]));
    table.add({layer.name, std::string(kind_name(layer.kind)), inputs_of(*network, layer), output, format_size(bytes),
               parameters == 0 ? "" : fmt::format("{}", parameters), fmt::format("{:.1f}", flops[l] / 1e6)});
    list.push_back({{"name", layer.name},
                    {"kind", kind_name(layer.kind)},
                    {"output", output},
                    {"output_bytes", bytes.count()},
                    {"parameters", parameters},
                    {"forward_flops", flops[l]}});
  }
  if (arguments.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"model", network->name},
                                              {"batch", arguments.batch},
                                              {"parameters", network->parameter_count()},
                                              {"layers", list}}
                           .dump(2));
    return kDone;
  }
  fmt::print("{}, batch {}\n\n{}\n", network->name, arguments.batch, table.text());
  fmt::print("{} layers, {} parameters, {} of layer outputs, {:.3g} GFLOP forward\n", network->layers.size(),
             network->parameter_count(), format_size(activations), total_flops / 1e9);
  return kDone;
}

}  // namespace

Command summary_command(CLI::App& root) {
  auto arguments = std::make_shared<SummaryArguments>();
  CLI::App* app = root.add_subcommand("summary", "A network layer by layer: shapes, bytes, parameters");
  arguments->model.add_to(*app);
  app->add_option("--batch", arguments->batch, "Samples per step")->capture_default_str();
  app->add_flag("--json", arguments->json, "Print one JSON object");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
