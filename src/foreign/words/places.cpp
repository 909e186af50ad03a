// What takes elements to other places: resizing, padding, parts and concatenation.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "foreign/lowering.h"

namespace tide {
namespace {

// Elements first to first + count of an axis behind the batch.
Made part_of(const NodeContext& node, Made x, std::size_t axis, std::int64_t first, std::int64_t count) {
  Operations& operations = node.operations();
  const Shape shape = operations.shape(x);
  if (first == 0 && count == shape.extent(axis)) return x;
  if (count < 1) node.refuse("it keeps nothing of axis {}", axis);
  PadOptions options;
  options.before.assign(shape.rank() - 1, 0);
  options.after.assign(shape.rank() - 1, 0);
  options.before[axis - 1] = -first;
  options.after[axis - 1] = first + count - shape.extent(axis);
  return operations.layer(LayerKind::pad, {x}, options, &node.node());
}

// All of the batch, whatever it is.
bool is_whole_batch(const NodeContext& node, std::int64_t start, std::int64_t end) {
  return start == 0 && end >= node.lowering().batch.value_or(std::int64_t{1} << 31);
}

void lower_slice(const NodeContext& node) {
  const auto starts = node.list("starts", 1), ends = node.list("ends", 2), steps = node.list("steps", 4);
  auto axes = node.list("axes", 3);
  if (!starts || !ends || starts->size() != ends->size()) node.refuse("its starts and ends are not as many");
  if (!axes) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (axes->size() != starts->size() || (steps && steps->size() != starts->size()))
    node.refuse("its starts, axes and steps are not as many");
  if (std::holds_alternative<SampleNumbers>(node.value(0))) {
    for (std::size_t i = 0; i < starts->size(); ++i)
      if ((*axes)[i] != 0 || !is_whole_batch(node, (*starts)[i], (*ends)[i]) || (steps && (*steps)[i] != 1))
        node.refuse("it takes a part of the batch, for which there is no layer");
    return node.give(node.value(0));
  }
  Made x = node.made(0);
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const Shape shape = node.operations().shape(x);
    const auto axis = static_cast<std::size_t>(node.axis((*axes)[i], shape.rank()));
    if (steps && (*steps)[i] != 1) node.refuse("it takes every {}th element; there is a layer for step 1", (*steps)[i]);
    if (axis == 0) {
      if (!is_whole_batch(node, (*starts)[i], (*ends)[i]))
        node.refuse("it takes a part of the batch, for which there is no layer");
      continue;
    }
    const std::int64_t extent = shape.extent(axis);
    const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent); };
    const std::int64_t first = place((*starts)[i]);
    x = part_of(node, x, axis, first, place((*ends)[i]) - first);
  }
  node.give(x);
}

std::vector<std::int64_t> split_sizes(const NodeContext& node, std::int64_t extent, std::size_t outputs) {
  if (const auto given = node.list("split", 1)) return *given;
  const auto count = node.has("num_outputs") ? node.integer("num_outputs", 0) : static_cast<std::int64_t>(outputs);
  if (count < 1 || count > extent) node.refuse("it cuts {} elements into {} parts", extent, count);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), (extent + count - 1) / count);
  sizes.back() = extent - (count - 1) * sizes[0];
  return sizes;
}

// The parts of an axis: a split where that is the channels.
std::vector<Made> parts_of(const NodeContext& node, std::size_t axis, const std::vector<std::int64_t>& sizes) {
  const Made x = node.made(0);
  const Shape shape = node.shape(0);
  if (axis == 0) node.refuse("it cuts the batch, for which there is no layer");
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    if (size < 1) node.refuse("one of its parts has {} elements", size);
    sum = checked_add(sum, size);
  }
  if (sum != shape.extent(axis)) node.refuse("its parts have {} of {} elements", sum, shape.extent(axis));
  std::vector<Made> parts;
  if (sizes.size() == 1) return {x};
  if (axis == 1) {
    const Made split = node.operations().layer(LayerKind::split, {x}, SplitOptions{sizes}, &node.node());
    for (std::size_t i = 0; i < sizes.size(); ++i) parts.push_back({split.operation, i});
    return parts;
  }
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(part_of(node, x, axis, first, size));
    first += size;
  }
  return parts;
}

void lower_split(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  const auto axis = static_cast<std::size_t>(node.axis(node.integer("axis", 0), shape.rank()));
  const std::vector<Made> parts =
      parts_of(node, axis, split_sizes(node, shape.extent(axis), node.node().outputs.size()));
  if (parts.size() != node.node().outputs.size())
    node.refuse("it has {} outputs but {} parts", node.node().outputs.size(), parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) node.give(parts[i], i);
}

void lower_split_to_sequence(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  const auto axis = static_cast<std::size_t>(node.axis(node.integer("axis", 0), shape.rank()));
  const std::int64_t extent = shape.extent(axis);
  if (node.has_input(1) && node.integer("keepdims", 1) == 0) node.refuse("it takes its axis away; keep it");
  std::vector<std::int64_t> sizes;
  const Known* const given = node.has_input(1) ? node.known(1) : nullptr;
  if (node.has_input(1) && given == nullptr) node.refuse("its sizes are computed while it runs");
  const std::optional<double> one = given != nullptr && given->extents.empty() ? one_value(*given) : std::nullopt;
  if (given != nullptr && !one) {
    sizes = *node.list("split", 1);
  } else {
    const auto size = one ? static_cast<std::int64_t>(*one) : 1;
    if (size < 1 || extent / size > 4096) node.refuse("it cuts {} elements into parts of {}", extent, size);
    for (std::int64_t first = 0; first < extent; first += size) sizes.push_back(std::min(size, extent - first));
  }
  node.give(Sequence{parts_of(node, axis, sizes)});
}

void lower_sequence_at(const NodeContext& node) {
  const auto* const sequence = std::get_if<Sequence>(&node.value(0));
  const std::optional<double> place = node.scalar(1);
  if (sequence == nullptr || !place) node.refuse("it takes one of a list that is computed while it runs");
  const std::int64_t index = node.axis(static_cast<std::int64_t>(*place), sequence->values.size());
  node.give(sequence->values[static_cast<std::size_t>(index)]);
}

// One element of an axis, which it takes away.
void lower_gather(const NodeContext& node) {
  const Shape shape = node.shape(0);
  const auto axis = static_cast<std::size_t>(node.axis(node.integer("axis", 0), shape.rank()));
  const std::optional<double> index = node.scalar(1);
  const Known* const indices = node.known(1);
  if (!index || indices == nullptr) node.refuse("it takes elements by a list of indices, for which there is no layer");
  if (axis == 0) node.refuse("it takes a part of the batch, for which there is no layer");
  const std::int64_t place = static_cast<std::int64_t>(*index) < 0
                                 ? static_cast<std::int64_t>(*index) + shape.extent(axis)
                                 : static_cast<std::int64_t>(*index);
  if (place < 0 || place >= shape.extent(axis)) node.refuse("it takes element {} of {}", place, shape.extent(axis));
  const Made part = part_of(node, node.made(0), axis, place, 1);
  if (!indices->extents.empty()) return node.give(part);
  if (shape.rank() == 2) node.refuse("it leaves nothing but the batch, for which there is no layer");
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (i != axis) extents.push_back(shape.extent(i));
  node.give(node.operations().reshape(part, Shape(extents), &node.node()));
}

// What exporters write for x[:] = y: all samples of x by their numbers.
void lower_scatter(const NodeContext& node) {
  const auto* const samples = std::get_if<SampleNumbers>(&node.value(1));
  const std::string reduction = node.text("reduction", "none");
  if (samples == nullptr || !samples->column || reduction != "none" || node.shape(0) != node.shape(2))
    node.refuse(
        "it writes over a part of a computed value, for which there is no layer; put the parts together with torch.cat "
        "in the model");
  node.give(node.made(2));
}

void lower_concat(const NodeContext& node) {
  Operations& operations = node.operations();
  std::vector<Made> values;
  for (std::size_t i = 0; i < node.inputs(); ++i) values.push_back(node.made(i));
  if (values.empty()) node.refuse("it has no inputs");
  const std::size_t rank = node.shape(0).rank();
  const std::int64_t axis = node.axis(node.integer("axis", 1), rank);
  if (axis == 0) node.refuse("it joins batches, for which there is no layer");
  for (const Made value : values)
    if (operations.shape(value).rank() != rank) node.refuse("its inputs have different numbers of axes");
  if (values.size() == 1) return node.give(values[0]);
  if (axis == 1) return node.give(operations.layer(LayerKind::concat, values, NoOptions{}, &node.node()));
  // Along another axis, which changes places with the channels for that.
  std::vector<std::int64_t> swapped(rank);
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[1], swapped[static_cast<std::size_t>(axis)]);
  for (Made& value : values)
    value = operations.layer(LayerKind::transpose, {value}, TransposeOptions{swapped}, &node.node());
  const Made joined = operations.layer(LayerKind::concat, values, NoOptions{}, &node.node());
  node.give(operations.layer(LayerKind::transpose, {joined}, TransposeOptions{swapped}, &node.node()));
}

void lower_pad(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  const auto pads = node.list("pads", 1);
  if (!pads) node.refuse("its pads are missing");
  std::vector<std::int64_t> axes(shape.rank());
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto given = node.list("axes", 3)) axes = *given;
  if (pads->size() != 2 * axes.size()) node.refuse("its pads are {} numbers for {} axes", pads->size(), axes.size());
  PadOptions options;
  options.before.assign(shape.rank() - 1, 0);
  options.after.assign(shape.rank() - 1, 0);
  bool pads_something = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(node.axis(axes[i], shape.rank()));
    const std::int64_t before = (*pads)[i], after = (*pads)[i + axes.size()];
    if (before == 0 && after == 0) continue;
    if (axis == 0) node.refuse("it pads the batch, for which there is no layer");
    options.before[axis - 1] = before;
    options.after[axis - 1] = after;
    pads_something = true;
  }
  const std::string mode = node.text("mode", "constant");
  if (mode == "reflect")
    options.mode = PadMode::reflect;
  else if (mode == "edge")
    options.mode = PadMode::replicate;
  else if (mode != "constant")
    node.refuse("its mode is '{}'; there are layers for constant, reflect and edge", mode);
  options.value = node.number("value", 0);
  if (node.has_input(2)) {
    const std::optional<double> value = node.scalar(2);
    if (!value) node.refuse("its value is not one constant number");
    options.value = *value;
  }
  if (!pads_something) return node.give(node.made(0));
  node.give_layer(LayerKind::pad, options);
}

struct ResizedAxis {
  std::int64_t in = 1, out = 1;
  double scale = 1;    // output to input
  bool given = false;  // as a scale, not by the extents
};

// The middle of an output element in the input, as ONNX says it.
double onnx_place(const std::string& coordinates, const ResizedAxis& axis, std::int64_t i) {
  const auto at = static_cast<double>(i);
  if (coordinates == "asymmetric") return at / axis.scale;
  if (coordinates == "align_corners")
    return axis.out > 1 ? at * static_cast<double>(axis.in - 1) / static_cast<double>(axis.out - 1) : 0;
  if (coordinates == "pytorch_half_pixel" && axis.out <= 1) return 0;
  return (at + 0.5) / axis.scale - 0.5;
}

std::int64_t onnx_nearest(const std::string& rounding, double place) {
  if (rounding == "floor") return static_cast<std::int64_t>(std::floor(place));
  if (rounding == "ceil") return static_cast<std::int64_t>(std::ceil(place));
  if (rounding == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(place + 0.5));
  return static_cast<std::int64_t>(std::ceil(place - 0.5));
}

// As the layer takes them (backend/reference/rearrange.cpp).
std::int64_t our_nearest(ResizeCoordinates coordinates, const ResizedAxis& axis, std::int64_t i) {
  const double step = axis.given ? 1 / axis.scale : static_cast<double>(axis.in) / static_cast<double>(axis.out);
  const float half = coordinates == ResizeCoordinates::half_pixel ? 0.5F : 0.0F;
  const float place = (static_cast<float>(i) + half) * static_cast<float>(step);
  return std::clamp(static_cast<std::int64_t>(std::floor(place)), std::int64_t{0}, axis.in - 1);
}

ResizeCoordinates nearest_coordinates(const NodeContext& node, const std::string& coordinates,
                                      const std::array<ResizedAxis, 2>& axes) {
  const std::string rounding = node.text("nearest_mode", "round_prefer_floor");
  for (const ResizeCoordinates ours : {ResizeCoordinates::asymmetric, ResizeCoordinates::half_pixel}) {
    bool same = true;
    for (const ResizedAxis& axis : axes)
      for (std::int64_t i = 0; same && i < axis.out; ++i)
        same = our_nearest(ours, axis, i) ==
               std::clamp(onnx_nearest(rounding, onnx_place(coordinates, axis, i)), std::int64_t{0}, axis.in - 1);
    if (same) return ours;
  }
  node.refuse(
      "it takes the nearest element by coordinates '{}' and rounding '{}', for which there is no layer at this size",
      coordinates, rounding);
}

ResizeCoordinates linear_coordinates(const NodeContext& node, const std::string& coordinates,
                                     const std::array<ResizedAxis, 2>& axes) {
  if (coordinates == "align_corners") return ResizeCoordinates::align_corners;
  if (coordinates == "asymmetric") return ResizeCoordinates::asymmetric;
  if (coordinates == "half_pixel") return ResizeCoordinates::half_pixel;
  if (coordinates == "pytorch_half_pixel") {
    for (const ResizedAxis& axis : axes)
      if (axis.out == 1 && axis.in > 1)
        node.refuse("it makes an axis of {} one of 1, for which there is no layer; average it instead", axis.in);
    return ResizeCoordinates::half_pixel;
  }
  node.refuse(
      "its coordinates are '{}'; there are layers for half_pixel, pytorch_half_pixel, align_corners and asymmetric",
      coordinates);
}

// Height and width; the other axes stay as they are.
std::array<ResizedAxis, 2> read_axes(const NodeContext& node, const Shape& shape) {
  std::array<ResizedAxis, 2> result{ResizedAxis{shape.height(), shape.height()},
                                    ResizedAxis{shape.width(), shape.width()}};
  std::vector<std::int64_t> axes{0, 1, 2, 3};
  if (node.has("axes")) axes = node.integers("axes");
  const std::size_t scales_at = 2, sizes_at = 3;
  std::vector<Number> sizes;
  std::vector<double> scales;
  if (node.has_input(sizes_at)) {
    const Known* const known = node.known(sizes_at);
    const auto numbers = known != nullptr ? numbers_of(*known) : std::nullopt;
    if (!numbers) node.refuse("its size is computed while it runs; export with fixed shapes behind the batch");
    sizes = *numbers;
  } else if (node.has_input(scales_at)) {
    const Known* const known = node.known(scales_at);
    const auto array = known != nullptr ? as_array(*known, 16) : std::nullopt;
    if (!array || element_count(array->extents) > 16)
      node.refuse("its scales are computed while it runs; export with fixed shapes behind the batch");
    scales = doubles_of(*array);
  }
  if (sizes.size() != axes.size() && scales.size() != axes.size())
    node.refuse("it has neither a size nor a scale for each of {} axes", axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = node.axis(axes[i], 4);
    if (axis < 2) {
      const bool stays =
          sizes.empty() ? scales[i] == 1
          : axis == 0   ? sizes[i] == kBatch || (node.lowering().batch && sizes[i] == Number{*node.lowering().batch})
                        : sizes[i] == Number{shape.channels()};
      if (!stays) node.refuse("it resizes the {}, for which there is no layer", axis == 0 ? "batch" : "channels");
      continue;
    }
    ResizedAxis& resized = result[static_cast<std::size_t>(axis - 2)];
    if (!sizes.empty()) {
      if (!sizes[i].is_fixed()) node.refuse("its size depends on the batch");
      resized.out = sizes[i].constant;
      if (resized.out < 1) node.refuse("its result has an extent of {}", resized.out);
      resized.scale = static_cast<double>(resized.out) / static_cast<double>(resized.in);
    } else {
      const double out = std::floor(static_cast<double>(resized.in) * scales[i]);
      if (!(out >= 1 && out <= 0x1p40)) node.refuse("its scale is {}", scales[i]);
      resized.out = static_cast<std::int64_t>(out);
      resized.scale = scales[i];
      resized.given = out != static_cast<double>(resized.in) * scales[i];
    }
  }
  return result;
}

void lower_resize(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  if (shape.rank() != 4)
    node.refuse("it works on {}; there is a layer for channels x height x width", sample_text(shape));
  if (node.integer("antialias", 0) != 0) node.refuse("it smooths what it makes smaller, for which there is no layer");
  if (node.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    node.refuse("it keeps the ratio of height and width; export with the size itself");
  const std::array<ResizedAxis, 2> axes = read_axes(node, shape);
  if (axes[0].out == axes[0].in && axes[1].out == axes[1].in) return node.give(node.made(0));
  // What is compared place by place below must end.
  if (axes[0].out > 1'000'000 || axes[1].out > 1'000'000) node.refuse("its result is {}x{}", axes[0].out, axes[1].out);
  ResizeOptions options;
  options.height = axes[0].out;
  options.width = axes[1].out;
  if (axes[0].given) options.scale_height = axes[0].scale;
  if (axes[1].given) options.scale_width = axes[1].scale;
  const std::string mode = node.text("mode", "nearest");
  const std::string coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  if (mode == "nearest") {
    options.mode = ResizeMode::nearest;
    options.coordinates = nearest_coordinates(node, coordinates, axes);
  } else if (mode == "linear") {
    options.coordinates = linear_coordinates(node, coordinates, axes);
  } else {
    node.refuse("its mode is '{}'; there are layers for nearest and linear", mode);
  }
  node.give_layer(LayerKind::resize, options);
}

constexpr std::array kPlaceWords{
    Word{"", "Slice", lower_slice},
    Word{"", "Split", lower_split},
    Word{"", "SplitToSequence", lower_split_to_sequence},
    Word{"", "SequenceAt", lower_sequence_at},
    Word{"", "Gather", lower_gather},
    Word{"", "ScatterND", lower_scatter},
    Word{"", "Concat", lower_concat},
    Word{"", "Pad", lower_pad},
    Word{"", "Resize", lower_resize},
};

}  // namespace

std::span<const Word> place_words() { return kPlaceWords; }

}  // namespace tide
