// Softmax over the channels with the mean cross-entropy.
#include <cmath>

#include "network/kind.h"

namespace tide {
namespace {

std::vector<Shape> loss_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<SoftmaxOptions>();
  require(options.label_smoothing >= 0 && options.label_smoothing < 1,
          "label smoothing is {}; it must be at least 0 and below 1", options.label_smoothing);
  require(std::isfinite(options.weight) && options.weight > 0, "its weight is {}; it must be finite and above 0",
          options.weight);
  require(options.label_offset >= 0, "label offset is {}; it must not be negative", options.label_offset);
  return {inputs[0]};
}

}  // namespace

// It has no replay, which would count the metric twice. A loss is too small to save bytes on.
KindDescription describe_softmax_cross_entropy() {
  KindDescription kind;
  kind.defaults = SoftmaxOptions{};
  kind.shapes = loss_shapes;
  kind.forward = {{reads(Role::x), reads(Role::labels), writes(Role::y), adds_to(Role::metric)}, {{Role::x, Role::y}}};
  kind.backward = {{reads(Role::y), reads(Role::x, When::superneurons), reads(Role::labels),
                    writes(Role::dx, When::always, Role::y)},
                   {{Role::y, Role::dx}}};
  kind.replays = false;
  kind.full_precision = true;
  kind.flops_per_element = 12;
  kind.checkpoint = true;
  kind.dear = true;
  kind.paper_type = PaperType::softmax;
  return kind;
}

}  // namespace tide
