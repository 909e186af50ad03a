#include <cmath>

#include "network/kind.h"

namespace tide {
namespace {

std::vector<Shape> batch_norm_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<BatchNormOptions>();
  require(std::isfinite(options.epsilon) && options.epsilon > 0, "epsilon is {}; it must be finite and above 0",
          options.epsilon);
  require(options.momentum >= 0 && options.momentum <= 1, "momentum is {}; it must be between 0 and 1",
          options.momentum);
  return {inputs[0]};
}

std::vector<NewParameter> batch_norm_parameters(const Layer& /*layer*/, const Shape& input) {
  const Shape shape = per_channel(input.channels());
  return {{ParameterRole::scale, shape},
          {ParameterRole::shift, shape},
          {ParameterRole::running_mean, shape},
          {ParameterRole::running_variance, shape}};
}

SavedState statistics(Role /*role*/, const Layer& layer, std::int64_t /*samples*/) {
  return {per_channel(layer.outputs[0].channels())};
}

}  // namespace

// In a forward-only step it normalizes with the running statistics; in sub-batches, and backward where other
// layers are fused with it, it has tasks of its own (step/passes.cpp, step/batch_norm.cpp).
KindDescription describe_batch_norm() {
  KindDescription kind;
  kind.defaults = BatchNormOptions{};
  kind.shapes = batch_norm_shapes;
  kind.parameters = batch_norm_parameters;
  kind.forward = {
      {reads(Role::x), reads(Role::weight), reads(Role::bias), reads(Role::running_mean), reads(Role::running_variance),
       writes(Role::y), writes(Role::mean, When::training), writes(Role::inverse_deviation, When::training),
       writes(Role::running_mean, When::moving_statistics), writes(Role::running_variance, When::moving_statistics)},
      {{Role::x, Role::y}, {Role::running_mean, Role::running_mean}, {Role::running_variance, Role::running_variance}}};
  kind.replay = {
      reads(Role::x), reads(Role::weight), reads(Role::bias), reads(Role::mean), reads(Role::inverse_deviation),
      writes(Role::y)};
  kind.backward = {{reads(Role::x), reads(Role::dy), reads(Role::weight), reads(Role::mean),
                    reads(Role::inverse_deviation), writes(Role::dx), adds_to(Role::d_weight), adds_to(Role::d_bias)},
                   {{Role::dy, Role::dx}, {Role::x, Role::dx}}};
  kind.saved = statistics;
  kind.over_batch = true;
  kind.flops_per_element = 8;
  kind.passes = Passes::statistics_first;
  kind.paper_type = PaperType::batch_norm;
  return kind;
}

}  // namespace tide
