// Layers with several outputs.
#include "network/kind.h"

namespace tide {
namespace {

std::vector<Shape> split_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<SplitOptions>();
  const Shape& x = inputs[0];
  require(!options.channels.empty(), "it has no outputs; list the channels of each");
  std::vector<Shape> outputs;
  std::int64_t sum = 0;
  for (const std::int64_t channels : options.channels) {
    require(channels >= 1, "an output has {} channels; give at least 1", channels);
    sum = checked_add(sum, channels);
    outputs.push_back(x.with_extent(1, channels));
  }
  require(sum == x.channels(), "its outputs have {} channels together but its input has {}; make them equal", sum,
          x.channels());
  return outputs;
}

std::vector<Shape> fork_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<ForkOptions>();
  require(options.branches >= 1, "it has {} branches; give at least 1", options.branches);
  return std::vector<Shape>(static_cast<std::size_t>(options.branches), inputs[0]);
}

}  // namespace

KindDescription describe_split() {
  KindDescription kind;
  kind.defaults = SplitOptions{};
  kind.shapes = split_shapes;
  kind.forward.operands = {reads(Role::x), writes(Role::y)};
  kind.backward.operands = {reads(Role::dy), writes(Role::dx)};
  kind.checkpoint = true;
  return kind;
}

// The paper's FORK sums into the gradient of its first branch.
KindDescription describe_fork() {
  KindDescription kind = describe_split();
  kind.defaults = ForkOptions{};
  kind.shapes = fork_shapes;
  kind.backward = {{reads(Role::dy), writes(Role::dx, When::always, Role::dy)}, {{Role::dy, Role::dx}}};
  return kind;
}

}  // namespace tide
