#include "backend/separable.h"

#include <algorithm>

#include "base/checked.h"

namespace tide {
namespace {

int narrowed(std::int64_t extent) {
  if (extent > INT32_MAX / 4) throw Error("an extent of {} is too large for this layer", extent);
  return static_cast<int>(extent);
}

// Of an axis by its place among channels, height and width.
std::int64_t extent_of(const Shape& shape, std::size_t axis) { return shape.rank() > axis ? shape.extent(axis) : 1; }

AxisMap averaged(std::int64_t in, std::int64_t out) {
  return {.kind = AxisMap::Kind::average, .in = narrowed(in), .out = narrowed(out)};
}
AxisMap kept(std::int64_t extent) {
  return {.kind = AxisMap::Kind::constant, .in = narrowed(extent), .out = narrowed(extent)};
}

AxisMap resized(const ResizeOptions& options, double given, std::int64_t in, std::int64_t out) {
  AxisMap map{.kind = options.mode == ResizeMode::nearest ? AxisMap::Kind::nearest : AxisMap::Kind::bilinear,
              .coordinates = options.coordinates,
              .in = narrowed(in),
              .out = narrowed(out)};
  map.scale = given > 0 ? 1 / given : static_cast<double>(in) / static_cast<double>(out);
  if (options.coordinates == ResizeCoordinates::align_corners)
    map.scale = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  return map;
}

AxisMap padded(const PadOptions& options, std::size_t axis, std::int64_t in, std::int64_t out) {
  constexpr AxisMap::Kind kKinds[] = {AxisMap::Kind::constant, AxisMap::Kind::reflect, AxisMap::Kind::replicate};
  return {.kind = kKinds[static_cast<std::size_t>(options.mode)],
          .in = narrowed(in),
          .out = narrowed(out),
          .before = axis <= options.before.size() ? narrowed(options.before[axis - 1]) : 0};
}

}  // namespace

bool is_spatial_mean(const TaskView& view) {
  const auto& axes = view.options<MeanOptions>().axes;
  return axes.size() + 2 == view.input().rank() && std::find(axes.begin(), axes.end(), 1) == axes.end();
}

SeparableMaps separable_maps(const TaskView& view) {
  const Shape in = view.input(), out = view.output();
  const auto map = [&](const auto& make) {
    return SeparableMaps{make(1, extent_of(in, 1), extent_of(out, 1)), make(2, extent_of(in, 2), extent_of(out, 2)),
                         make(3, extent_of(in, 3), extent_of(out, 3))};
  };
  const Layer& layer = view.layer();
  if (layer.kind == LayerKind::pad) {
    const auto& options = layer.as<PadOptions>();
    SeparableMaps maps = map([&](std::size_t axis, auto from, auto to) { return padded(options, axis, from, to); });
    maps.value = static_cast<float>(options.value);
    return maps;
  }
  if (layer.kind == LayerKind::resize) {
    const auto& options = layer.as<ResizeOptions>();
    return map([&](std::size_t axis, auto from, auto to) {
      if (axis == 1) return kept(from);
      return resized(options, axis == 2 ? options.scale_height : options.scale_width, from, to);
    });
  }
  return map([&](std::size_t axis, auto from, auto to) { return axis == 1 ? kept(from) : averaged(from, to); });
}

}  // namespace tide
