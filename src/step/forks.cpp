#include "step/build.h"

namespace tide {

Network insert_forks(const Network& network) {
  std::vector<std::vector<std::int64_t>> uses(network.layers.size());
  for (std::size_t i = 0; i < network.layers.size(); ++i) uses[i].resize(network.layers[i].outputs.size(), 0);
  for (const Layer& layer : network.layers)
    for (const Value& input : layer.inputs) ++uses[input.layer.index()][static_cast<std::size_t>(input.output)];

  Network result;
  result.name = network.name;
  result.parameters = network.parameters;
  // Where a value is to be had now; behind a fork, its branches are handed out in turn.
  struct Source {
    Value value;
    bool forked = false;
  };
  std::vector<std::vector<Source>> sources(network.layers.size());
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    Layer layer = network.layers[i];
    for (Value& input : layer.inputs) {
      Source& source = sources[input.layer.index()][static_cast<std::size_t>(input.output)];
      input = source.value;
      if (source.forked) ++source.value.output;
    }
    // Masks are those of the network as it was.
    if (std::int64_t* const stream = random_stream(layer.options); stream != nullptr && *stream < 0)
      *stream = static_cast<std::int64_t>(i);
    const LayerId id(result.layers.size());
    const std::vector<Shape> outputs = layer.outputs;
    const std::string name = layer.name;
    const bool counted = layer.kind != LayerKind::input;
    result.layers.push_back(std::move(layer));
    for (std::size_t output = 0; output < outputs.size(); ++output) {
      Source source{Value{id, static_cast<std::int32_t>(output)}};
      // The input batch is not a data tensor: its consumers may read it side by side.
      if (const std::int64_t branches = uses[i][output]; branches > 1 && counted) {
        Layer fork;
        fork.kind = LayerKind::fork;
        fork.name = output == 0 ? name + ".fork" : fmt::format("{}.fork{}", name, output);
        fork.inputs = {source.value};
        fork.options = ForkOptions{branches};
        fork.outputs.assign(static_cast<std::size_t>(branches), outputs[output]);
        source = {Value{LayerId(result.layers.size()), 0}, true};
        result.layers.push_back(std::move(fork));
      }
      sources[i].push_back(source);
    }
  }
  return result;
}

}  // namespace tide
