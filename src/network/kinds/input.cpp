#include "network/kind.h"

namespace tide {
namespace {

std::vector<Shape> input_shapes(const Layer& layer, const std::vector<Shape>& /*inputs*/) {
  const Shape& sample = layer.as<InputOptions>().sample;
  require(sample.batch() == 1, "its sample has batch {}; give the shape of one sample (batch 1)", sample.batch());
  require(sample.rank() >= 2, "its sample has a batch alone; give it at least one extent");
  for (const std::int64_t extent : sample.extents())
    require(extent >= 1, "its sample is {}; every dimension must be at least 1", sample_text(sample));
  return {sample};
}

}  // namespace

// The host fills in the batch; a task only stores it as bf16 where the step asks for that.
KindDescription describe_input() {
  KindDescription kind;
  kind.defaults = InputOptions{};
  kind.fewest_inputs = kind.most_inputs = 0;
  kind.shapes = input_shapes;
  kind.numbered = false;
  kind.checkpoint = true;
  kind.dear = true;
  return kind;
}

}  // namespace tide
