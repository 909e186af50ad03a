// Pools and reductions.
#include <algorithm>
#include <array>

#include "foreign/lowering.h"
#include "foreign/windows.h"

namespace tide {
namespace {

constexpr std::int64_t kMostPositions = 256;  // of a max pool's window

template <LayerKind kind>
void lower_pool(const NodeContext& node) {
  const std::vector<std::int64_t> kernel = node.integers("kernel_shape");
  const Shape& shape = node.shape(0);
  const bool line = shape.rank() == 3;
  if ((!line && shape.rank() != 4) || kernel.size() != shape.rank() - 2)
    node.refuse(
        "it works on {} with a window of {} extents; there are layers for channels x height x width and channels x "
        "length",
        sample_text(shape), kernel.size());
  Operations& operations = node.operations();
  Made x = node.made(0);
  if (line) x = operations.reshape(x, {1, shape.extent(1), 1, shape.extent(2)}, &node.node());
  PoolOptions options;
  options.window = read_window(node, {line ? 1 : kernel[0], kernel.back()}, operations.shape(x), line);
  options.round_up = node.integer("ceil_mode", 0) != 0;
  options.count_padding = kind == LayerKind::average_pool && node.integer("count_include_pad", 0) != 0;
  const Made result = operations.layer(kind, {x}, options, &node.node());
  if (!line) return node.give(result);
  node.give(operations.reshape(result, {1, shape.extent(1), operations.shape(result).width()}, &node.node()));
}

void lower_global_average(const NodeContext& node) { node.give_layer(LayerKind::global_average_pool); }

Made largest_of_all(const NodeContext& node, Made x) {
  Operations& operations = node.operations();
  const Shape shape = operations.shape(x);
  const auto pool = [&](Made from, std::int64_t height, std::int64_t width) {
    return operations.layer(LayerKind::max_pool, {from},
                            PoolOptions{.window = {.kernel_height = height, .kernel_width = width}}, &node.node());
  };
  if (shape.height() <= kMostPositions && shape.width() <= kMostPositions) {
    if (shape.height() * shape.width() <= kMostPositions) return pool(x, shape.height(), shape.width());
    return pool(pool(x, shape.height(), 1), 1, shape.width());
  }
  node.refuse("it takes the largest of {}x{} positions; there are layers for at most {} in a row", shape.height(),
              shape.width(), kMostPositions);
}

void lower_global_max(const NodeContext& node) {
  if (node.shape(0).rank() != 4)
    node.refuse("it works on {}; there is a layer for channels x height x width", sample_text(node.shape(0)));
  node.give(largest_of_all(node, node.made(0)));
}

struct Reduction {
  std::vector<std::int64_t> axes;  // ascending
  bool keep = true;
};

Reduction read_reduction(const NodeContext& node) {
  const std::size_t rank = node.shape(0).rank();
  Reduction reduction;
  const auto axes = node.list("axes", 1);
  if (!axes || axes->empty()) node.refuse("it goes over all axes, the batch included; name those behind the batch");
  for (const std::int64_t axis : *axes) reduction.axes.push_back(node.axis(axis, rank));
  std::sort(reduction.axes.begin(), reduction.axes.end());
  if (std::adjacent_find(reduction.axes.begin(), reduction.axes.end()) != reduction.axes.end())
    node.refuse("it names an axis twice");
  if (reduction.axes.front() == 0) node.refuse("it goes over the batch, for which there is no layer");
  reduction.keep = node.integer("keepdims", 1) != 0;
  return reduction;
}

bool is_over_positions(const Reduction& reduction, const Shape& shape) {
  return shape.rank() == 4 && reduction.axes == std::vector<std::int64_t>{2, 3};
}

// Without its extents of 1 behind the channels.
Made as_vector(const NodeContext& node, Made x) {
  return node.operations().reshape(x, {1, node.operations().shape(x).per_sample()}, &node.node());
}

Made mean_of(const NodeContext& node) {
  const Reduction reduction = read_reduction(node);
  const Made x = node.made(0);
  if (is_over_positions(reduction, node.shape(0))) {
    const Made pooled = node.operations().layer(LayerKind::global_average_pool, {x}, NoOptions{}, &node.node());
    return reduction.keep ? pooled : as_vector(node, pooled);
  }
  if (reduction.axes.size() + 1 == node.shape(0).rank() && !reduction.keep)
    node.refuse("it leaves nothing but the batch, for which there is no layer");
  return node.operations().layer(LayerKind::mean, {x}, MeanOptions{.axes = reduction.axes, .keep = reduction.keep},
                                 &node.node());
}

void lower_mean(const NodeContext& node) { node.give(mean_of(node)); }

void lower_sum_of(const NodeContext& node) {
  double count = 1;
  for (const std::int64_t axis : read_reduction(node).axes)
    count *= static_cast<double>(node.shape(0).extent(static_cast<std::size_t>(axis)));
  node.give(node.operations().affine(mean_of(node), count, 0, &node.node()));
}

void lower_largest(const NodeContext& node) {
  const Reduction reduction = read_reduction(node);
  if (!is_over_positions(reduction, node.shape(0)))
    node.refuse("it takes the largest along axes {}; there is a layer for height and width together",
                fmt::join(reduction.axes, ", "));
  const Made pooled = largest_of_all(node, node.made(0));
  node.give(reduction.keep ? pooled : as_vector(node, pooled));
}

void lower_adaptive(const NodeContext& node) {
  const std::vector<std::int64_t> size = node.integers("output_size");
  if (size.empty() || size.size() > 2) node.refuse("its 'output_size' are {} numbers; it takes 1 or 2", size.size());
  if (size[0] == 1 && size.back() == 1) return lower_global_average(node);
  node.give_layer(LayerKind::adaptive_average_pool, AdaptivePoolOptions{.height = size[0], .width = size.back()});
}

constexpr std::array kPoolWords{
    Word{"", "MaxPool", lower_pool<LayerKind::max_pool>},
    Word{"", "AveragePool", lower_pool<LayerKind::average_pool>},
    Word{"", "GlobalAveragePool", lower_global_average},
    Word{"", "GlobalMaxPool", lower_global_max},
    Word{"", "ReduceMean", lower_mean},
    Word{"", "ReduceSum", lower_sum_of},
    Word{"", "ReduceMax", lower_largest},
    Word{"tidepool", "AdaptiveAveragePool", lower_adaptive},
};

}  // namespace

std::span<const Word> pool_words() { return kPoolWords; }

}  // namespace tide
