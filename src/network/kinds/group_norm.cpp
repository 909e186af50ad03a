// Group normalization: y = (x - mean) * inverse_deviation * scale + shift, with the statistics of each
// sample's groups of neighbouring channels.
#include <cmath>

#include "network/kind.h"

namespace tide {
namespace {

std::vector<Shape> group_norm_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<GroupNormOptions>();
  require(options.groups >= 1 && inputs[0].channels() % options.groups == 0,
          "it has {} groups; their number must be at least 1 and divide its {} channels", options.groups,
          inputs[0].channels());
  require(std::isfinite(options.epsilon) && options.epsilon > 0, "epsilon is {}; it must be finite and above 0",
          options.epsilon);
  return {inputs[0]};
}

std::vector<NewParameter> group_norm_parameters(const Layer& /*layer*/, const Shape& input) {
  return {{ParameterRole::scale, per_channel(input.channels())}, {ParameterRole::shift, per_channel(input.channels())}};
}

SavedState statistics(Role /*role*/, const Layer& layer, std::int64_t samples) {
  return {Shape{samples, layer.as<GroupNormOptions>().groups}};
}

}  // namespace

// Samples do not mix, so that sub-batches and forward-only steps are nothing special. A replay normalizes with
// the statistics that are saved.
KindDescription describe_group_norm() {
  KindDescription kind;
  kind.defaults = GroupNormOptions{};
  kind.shapes = group_norm_shapes;
  kind.parameters = group_norm_parameters;
  kind.forward = {{reads(Role::x), reads(Role::weight), reads(Role::bias), writes(Role::y),
                   writes(Role::mean, When::training), writes(Role::inverse_deviation, When::training)},
                  {{Role::x, Role::y}}};
  kind.replay = {
      reads(Role::x), reads(Role::weight), reads(Role::bias), reads(Role::mean), reads(Role::inverse_deviation),
      writes(Role::y)};
  kind.backward = {{reads(Role::x), reads(Role::dy), reads(Role::weight), reads(Role::mean),
                    reads(Role::inverse_deviation), writes(Role::dx), adds_to(Role::d_weight), adds_to(Role::d_bias)},
                   {{Role::dy, Role::dx}, {Role::x, Role::dx}}};
  kind.saved = statistics;
  kind.flops_per_element = 8;
  kind.passes = Passes::statistics_first;
  return kind;
}

}  // namespace tide
