// Layers whose results are elements of their input, or averages of them, in other places.
#include <algorithm>
#include <cmath>

#include "network/kind.h"

namespace tide {
namespace {

KindDescription describe_places() {
  KindDescription kind;
  kind.forward.operands = {reads(Role::x), writes(Role::y)};
  kind.backward.operands = {reads(Role::dy), writes(Role::dx)};
  return kind;
}

void check_four(const Shape& x) {
  require(x.rank() == 4, "its input is {}; it takes channels x height x width", sample_text(x));
}

std::vector<Shape> mean_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<MeanOptions>();
  const Shape& x = inputs[0];
  require(!options.axes.empty(), "it averages over no axis; list at least one");
  std::vector<std::int64_t> extents;
  std::size_t found = 0;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    const bool averaged =
        std::find(options.axes.begin(), options.axes.end(), static_cast<std::int64_t>(axis)) != options.axes.end();
    if (averaged) ++found;
    if (!averaged) extents.push_back(x.extent(axis));
    if (averaged && options.keep) extents.push_back(1);
  }
  require(found == options.axes.size() && std::find(options.axes.begin(), options.axes.end(), 0) == options.axes.end(),
          "it averages over axes {}; list each of 1 to {} at most once", fmt::join(options.axes, ", "), x.rank() - 1);
  if (extents.size() == 1) extents.push_back(1);  // a value has something behind the batch
  return {Shape(extents)};
}

std::vector<Shape> adaptive_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<AdaptivePoolOptions>();
  check_four(inputs[0]);
  require(options.height >= 1 && options.width >= 1, "its output is {}x{}; give at least 1x1", options.height,
          options.width);
  return {Shape{1, inputs[0].channels(), options.height, options.width}};
}

std::vector<Shape> resized_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<ResizeOptions>();
  check_four(inputs[0]);
  require(options.height >= 1 && options.width >= 1, "its output is {}x{}; give at least 1x1", options.height,
          options.width);
  for (const double scale : {options.scale_height, options.scale_width})
    require(std::isfinite(scale) && scale >= 0, "its scale is {}; it must be finite and not below 0", scale);
  require(options.mode == ResizeMode::bilinear || options.coordinates != ResizeCoordinates::align_corners,
          "corners cannot be aligned where the nearest element is taken; use bilinear");
  return {Shape{1, inputs[0].channels(), options.height, options.width}};
}

std::vector<Shape> padded_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const auto& options = layer.as<PadOptions>();
  const Shape& x = inputs[0];
  require(options.before.size() == x.rank() - 1 && options.after.size() == x.rank() - 1,
          "it has {} and {} paddings; give {} each, one for each axis behind the batch", options.before.size(),
          options.after.size(), x.rank() - 1);
  require(x.rank() <= 4, "its input is {}; it takes at most channels x height x width", sample_text(x));
  require(std::isfinite(options.value), "its value is {}; it must be finite", options.value);
  Shape result = x;
  for (std::size_t axis = 1; axis < x.rank(); ++axis) {
    const std::int64_t before = options.before[axis - 1], after = options.after[axis - 1], in = x.extent(axis);
    const std::int64_t out = checked_add(checked_add(in, before), after);
    require(out >= 1 && before > -in && after > -in, "axis {} of {} would keep nothing with padding {} and {}", axis,
            in, before, after);
    require(options.mode != PadMode::reflect || (before < in && after < in),
            "axis {} of {} cannot be reflected by {} and {}; it takes less than it has", axis, in, before, after);
    result = result.with_extent(axis, out);
  }
  return {result};
}

std::vector<Shape> shuffled_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const std::int64_t groups = layer.as<ShuffleOptions>().groups;
  require(groups >= 1 && inputs[0].channels() % groups == 0,
          "it has {} groups; their number must be at least 1 and divide its {} channels", groups, inputs[0].channels());
  return {inputs[0]};
}

std::vector<Shape> transposed_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const std::vector<std::int64_t>& axes = layer.as<TransposeOptions>().axes;
  const Shape& x = inputs[0];
  std::vector<std::int64_t> sorted = axes, extents;
  std::sort(sorted.begin(), sorted.end());
  bool fits = axes.size() == x.rank() && axes[0] == 0;
  for (std::size_t i = 0; fits && i < sorted.size(); ++i) fits = sorted[i] == static_cast<std::int64_t>(i);
  require(fits, "its axes are {}; give 0 and then each of 1 to {} once", fmt::join(axes, ", "), x.rank() - 1);
  for (const std::int64_t axis : axes) extents.push_back(x.extent(static_cast<std::size_t>(axis)));
  return {Shape(extents)};
}

std::vector<Shape> reshaped_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const Shape& sample = layer.as<ReshapeOptions>().sample;
  require(sample.batch() == 1 && sample.rank() >= 2, "its shape has batch {}; give that of one sample (batch 1)",
          sample.batch());
  for (const std::int64_t extent : sample.extents())
    require(extent >= 1, "its shape is {}; every dimension must be at least 1", sample_text(sample));
  require(sample.elements() == inputs[0].per_sample(), "{} has {} elements but its input {} has {}; make them equal",
          sample_text(sample), sample.elements(), sample_text(inputs[0]), inputs[0].per_sample());
  return {sample};
}

std::vector<Shape> dropped_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  const double rate = layer.as<DropPathOptions>().rate;
  require(rate >= 0 && rate < 1, "its rate is {}; it must be at least 0 and below 1", rate);
  return {inputs[0]};
}

}  // namespace

KindDescription describe_mean() {
  KindDescription kind = describe_places();
  kind.defaults = MeanOptions{};
  kind.shapes = mean_shapes;
  kind.paper_type = PaperType::pool;
  return kind;
}

KindDescription describe_adaptive_average_pool() {
  KindDescription kind = describe_places();
  kind.defaults = AdaptivePoolOptions{};
  kind.shapes = adaptive_shapes;
  kind.paper_type = PaperType::pool;
  return kind;
}

KindDescription describe_resize() {
  KindDescription kind = describe_places();
  kind.defaults = ResizeOptions{};
  kind.shapes = resized_shapes;
  kind.flops_per_element = 8;
  return kind;
}

KindDescription describe_pad() {
  KindDescription kind = describe_places();
  kind.defaults = PadOptions{};
  kind.shapes = padded_shapes;
  return kind;
}

KindDescription describe_channel_shuffle() {
  KindDescription kind = describe_places();
  kind.defaults = ShuffleOptions{};
  kind.shapes = shuffled_shapes;
  return kind;
}

KindDescription describe_transpose() {
  KindDescription kind = describe_places();
  kind.defaults = TransposeOptions{};
  kind.shapes = transposed_shapes;
  return kind;
}

KindDescription describe_reshape() {
  KindDescription kind = describe_places();
  kind.defaults = ReshapeOptions{};
  kind.shapes = reshaped_shapes;
  return kind;
}

// As dropout, with one number for a sample or for each of its channels.
KindDescription describe_drop_path() {
  KindDescription kind = describe_places();
  kind.defaults = DropPathOptions{};
  kind.shapes = dropped_shapes;
  kind.forward.in_place = {{Role::x, Role::y}};
  kind.backward.in_place = {{Role::dy, Role::dx}};
  kind.alias = Alias::forward_only;
  kind.flops_per_element = 2;
  kind.paper_type = PaperType::dropout;
  return kind;
}

}  // namespace tide
