// Losses: their result is what the network answers (probabilities, or values), and how far that is from the
// labels goes into a metric.
#include <cmath>

#include "network/kind.h"

namespace tide {
namespace {

void check_loss(double weight, std::int64_t label_offset) {
  require(std::isfinite(weight) && weight > 0, "its weight is {}; it must be finite and above 0", weight);
  require(label_offset >= 0, "label offset is {}; it must not be negative", label_offset);
}

std::vector<Shape> loss_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<SoftmaxOptions>();
  require(options.label_smoothing >= 0 && options.label_smoothing < 1,
          "label smoothing is {}; it must be at least 0 and below 1", options.label_smoothing);
  check_loss(options.weight, options.label_offset);
  require(!(options.soft && options.counted), "with probabilities as labels all of them count; leave out `counted`");
  return {inputs[0]};
}

LossLabels class_labels(const Layer& layer) {
  const auto& options = layer.as<SoftmaxOptions>();
  const Shape& shape = layer.outputs[0];
  LossLabels labels{.offset = options.label_offset,
                    .count = options.soft ? shape.per_sample() : shape.positions(),
                    .floats = options.soft,
                    .counted = options.counted,
                    .classes = shape.channels(),
                    .weight = options.weight,
                    .terms = shape.positions(),
                    .answers = shape.positions()};
  if (labels.counted) labels.count = checked_add(labels.count, 1);
  return labels;
}

std::vector<Shape> element_loss_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<ElementLossOptions>();
  check_loss(options.weight, options.label_offset);
  return {inputs[0]};
}

LossLabels element_labels(const Layer& layer) {
  const auto& options = layer.as<ElementLossOptions>();
  const std::int64_t count = layer.outputs[0].per_sample();
  return {.offset = options.label_offset,
          .count = count,
          .floats = true,
          .weight = options.weight,
          .terms = count,
          .answers = layer.kind == LayerKind::sigmoid_cross_entropy ? count : 0};
}

}  // namespace

// A loss has no replay, which would count the metric twice. It is too small to save bytes on.
KindDescription describe_softmax_cross_entropy() {
  KindDescription kind;
  kind.defaults = SoftmaxOptions{};
  kind.shapes = loss_shapes;
  kind.forward = {{reads(Role::x), reads(Role::labels), writes(Role::y), adds_to(Role::metric)}, {{Role::x, Role::y}}};
  kind.backward = {{reads(Role::y), reads(Role::x, When::superneurons), reads(Role::labels),
                    writes(Role::dx, When::always, Role::y)},
                   {{Role::y, Role::dx}}};
  kind.loss = class_labels;
  kind.replays = false;
  kind.full_precision = true;
  kind.flops_per_element = 12;
  kind.checkpoint = true;
  kind.dear = true;
  kind.paper_type = PaperType::softmax;
  return kind;
}

// The mean of the cross-entropies of sigmoid(x) with targets between 0 and 1; its result is sigmoid(x).
KindDescription describe_sigmoid_cross_entropy() {
  KindDescription kind = describe_softmax_cross_entropy();
  kind.defaults = ElementLossOptions{};
  kind.shapes = element_loss_shapes;
  kind.loss = element_labels;
  kind.paper_type = PaperType::other;
  return kind;
}

// The mean of (x - target)^2; its result is x.
KindDescription describe_mean_squared_error() {
  KindDescription kind = describe_sigmoid_cross_entropy();
  kind.flops_per_element = 2;
  return kind;
}

}  // namespace tide
