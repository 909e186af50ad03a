// Local response normalization across channels.
#include <cmath>

#include "network/kind.h"

namespace tide {
namespace {

std::vector<Shape> lrn_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<LrnOptions>();
  require(options.size >= 1 && options.size % 2 == 1, "its size is {}; it must be odd and at least 1", options.size);
  require(std::isfinite(options.alpha) && options.alpha >= 0, "alpha is {}; it must be finite and not negative",
          options.alpha);
  require(std::isfinite(options.beta), "beta is {}; it must be finite", options.beta);
  require(std::isfinite(options.k) && options.k > 0, "k is {}; it must be finite and above 0", options.k);
  return {inputs[0]};
}

}  // namespace

KindDescription describe_lrn() {
  KindDescription kind;
  kind.defaults = LrnOptions{};
  kind.shapes = lrn_shapes;
  kind.forward.operands = {reads(Role::x), writes(Role::y)};
  kind.backward = {
      {reads(Role::x), reads(Role::y, When::superneurons), reads(Role::dy), writes(Role::dx, When::always, Role::dy)},
      {{Role::dy, Role::dx}}};
  kind.flops_per_element = 20;
  kind.passes = Passes::two;  // it reads its neighbours' channels
  kind.paper_type = PaperType::lrn;
  return kind;
}

}  // namespace tide
