// What gives the same elements other extents or another order.
#include <algorithm>
#include <array>
#include <numeric>

#include "foreign/lowering.h"

namespace tide {
namespace {

constexpr const char* kKeepBatch =
    "there are layers that keep the batch as the first axis; export with the samples apart";

bool is_the_batch(const NodeContext& node, const Number& extent) {
  return extent == kBatch || (node.lowering().batch && extent == Number{*node.lowering().batch});
}

std::int64_t product_of(const std::vector<std::int64_t>& extents) {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) product = checked_multiply(product, extent);
  return product;
}

Shape sample_of(const NodeContext& node, const std::vector<std::int64_t>& behind) {
  std::vector<std::int64_t> extents{1};
  extents.insert(extents.end(), behind.begin(), behind.end());
  if (extents.size() < 2 || extents.size() > Shape::kMostRank)
    node.refuse("its result has {} axes; there are layers for 2 to {}", extents.size(), Shape::kMostRank);
  return Shape(extents);
}

void give_reshaped(const NodeContext& node, const std::vector<std::int64_t>& behind) {
  node.give(node.operations().reshape(node.made(0), sample_of(node, behind), &node.node()));
}

void lower_reshape(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  const Known* const wanted = node.known(1);
  const auto numbers = wanted != nullptr ? numbers_of(*wanted) : std::nullopt;
  if (!numbers || numbers->empty())
    node.refuse("its result's shape is computed while it runs; export with fixed shapes behind the batch");
  const bool zero_copies = node.integer("allowzero", 0) == 0;
  std::vector<std::int64_t> behind;
  std::optional<std::size_t> open;
  bool batch_open = false;
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    Number extent = (*numbers)[i];
    if (extent == Number{0} && zero_copies) {
      if (i >= shape.rank()) node.refuse("it keeps extent {} of a value with {}", i + 1, shape.rank());
      extent = i == 0 ? kBatch : Number{shape.extent(i)};
    }
    if (i == 0) {
      batch_open = extent == Number{-1};
      if (!batch_open && !is_the_batch(node, extent)) node.refuse("it mixes the batch with other axes; {}", kKeepBatch);
      continue;
    }
    if (extent == Number{-1}) {
      if (open || batch_open) node.refuse("it leaves two extents open");
      open = i - 1;
      behind.push_back(1);
      continue;
    }
    if (!extent.is_fixed() || extent.constant < 1) node.refuse("it mixes the batch with other axes; {}", kKeepBatch);
    behind.push_back(extent.constant);
  }
  const std::int64_t given = product_of(behind), wanted_elements = shape.per_sample();
  if (open && given > 0 && wanted_elements % given == 0) behind[*open] = wanted_elements / given;
  if (product_of(behind) != wanted_elements)
    node.refuse("its result of {} per sample does not have the {} elements of {}; {}", fmt::join(behind, "x"),
                wanted_elements, sample_text(shape), kKeepBatch);
  give_reshaped(node, behind);
}

void lower_flatten(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  const std::int64_t axis = node.integer("axis", 1);
  if (axis != 1 && axis != 1 - static_cast<std::int64_t>(shape.rank()))
    node.refuse("it flattens from axis {} on, which mixes the batch with other axes; {}", axis, kKeepBatch);
  give_reshaped(node, {shape.per_sample()});
}

std::vector<std::int64_t> behind_batch(const Shape& shape) {
  return {shape.extents().begin() + 1, shape.extents().end()};
}

void lower_squeeze(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  std::vector<std::int64_t> axes;
  if (const auto given = node.list("axes", 1))
    for (const std::int64_t axis : *given) axes.push_back(node.axis(axis, shape.rank()));
  else
    for (std::size_t axis = 1; axis < shape.rank(); ++axis)
      if (shape.extent(axis) == 1) axes.push_back(static_cast<std::int64_t>(axis));
  std::vector<std::int64_t> behind;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) == axes.end()) {
      if (axis > 0) behind.push_back(shape.extent(axis));
      continue;
    }
    if (axis == 0) node.refuse("it takes the batch away; {}", kKeepBatch);
    if (shape.extent(axis) != 1) node.refuse("it takes away axis {}, which has extent {}", axis, shape.extent(axis));
  }
  give_reshaped(node, behind);
}

void lower_unsqueeze(const NodeContext& node) {
  const auto given = node.list("axes", 1);
  if (!given) node.refuse("it names no axes");
  if (const auto* const samples = std::get_if<SampleNumbers>(&node.value(0));
      samples != nullptr && !samples->column && given->size() == 1 && node.axis((*given)[0], 2) == 1)
    return node.give(SampleNumbers{.column = true});
  const Shape& shape = node.shape(0);
  const std::size_t rank = shape.rank() + given->size();
  std::vector<std::int64_t> axes;
  for (const std::int64_t axis : *given) axes.push_back(node.axis(axis, rank));
  std::sort(axes.begin(), axes.end());
  std::vector<std::int64_t> behind = behind_batch(shape);
  for (const std::int64_t axis : axes) {
    if (axis == 0) node.refuse("it puts an axis before the batch; {}", kKeepBatch);
    if (static_cast<std::size_t>(axis) - 1 > behind.size()) node.refuse("it names an axis twice");
    behind.insert(behind.begin() + axis - 1, 1);
  }
  give_reshaped(node, behind);
}

void lower_transpose(const NodeContext& node) {
  const std::size_t rank = node.shape(0).rank();
  std::vector<std::int64_t> axes = node.integers("perm");
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.rbegin(), axes.rend(), 0);
  }
  for (std::int64_t& axis : axes) axis = node.axis(axis, rank);
  if (axes.size() != rank) node.refuse("it orders {} axes of a value with {}", axes.size(), rank);
  if (axes[0] != 0) node.refuse("it moves the batch; {}", kKeepBatch);
  node.give_layer(LayerKind::transpose, TransposeOptions{axes});
}

// What it is spread to, where that is more than it is.
void lower_expand(const NodeContext& node) {
  const Made x = node.made(0);
  const Shape& shape = node.shape(0);
  const Known* const wanted = node.known(1);
  const auto numbers = wanted != nullptr ? numbers_of(*wanted) : std::nullopt;
  if (!numbers || numbers->size() > shape.rank())
    node.refuse("what it is spread to is computed while it runs, or has more axes than its input");
  Shape result = shape;
  const std::size_t missing = shape.rank() - numbers->size();
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    const Number& extent = (*numbers)[i];
    const std::size_t axis = missing + i;
    if (extent == Number{1} || extent == Number{-1}) continue;
    if (axis == 0) {
      if (!is_the_batch(node, extent)) node.refuse("it spreads the batch, for which there is no layer");
      continue;
    }
    if (!extent.is_fixed() || (shape.extent(axis) != 1 && shape.extent(axis) != extent.constant) || extent.constant < 1)
      node.refuse("it spreads axis {} from {}, which is not possible", axis, shape.extent(axis));
    result = result.with_extent(axis, extent.constant);
  }
  if (result == shape) return node.give(x);
  Operation operation;
  operation.piece = Piece::spread;
  operation.inputs = {x};
  operation.node = &node.node();
  operation.outputs = {result};
  node.give(node.operations().append(std::move(operation)));
}

// [B, C, H, W] with C = r * r * c, to [B, c, H * r, W * r].
void lower_depth_to_space(const NodeContext& node) {
  const Shape shape = node.shape(0);
  const std::int64_t block = node.integer("blocksize", 0);
  if (shape.rank() != 4 || block < 1 || shape.channels() % checked_multiply(block, block) != 0)
    node.refuse("it cuts {} into blocks of {}", sample_text(shape), block);
  const std::int64_t channels = shape.channels() / (block * block), h = shape.height(), w = shape.width();
  const bool channels_first = node.text("mode", "DCR") == "CRD";
  Operations& operations = node.operations();
  const Shape cut = channels_first ? Shape{1, channels, block, block, h, w} : Shape{1, block, block, channels, h, w};
  const std::vector<std::int64_t> axes =
      channels_first ? std::vector<std::int64_t>{0, 1, 4, 2, 5, 3} : std::vector<std::int64_t>{0, 3, 4, 1, 5, 2};
  const Made blocks = operations.reshape(node.made(0), cut, &node.node());
  const Made moved = operations.layer(LayerKind::transpose, {blocks}, TransposeOptions{axes}, &node.node());
  node.give(
      operations.reshape(moved, {1, channels, checked_multiply(h, block), checked_multiply(w, block)}, &node.node()));
}

void lower_space_to_depth(const NodeContext& node) {
  const Shape shape = node.shape(0);
  const std::int64_t block = node.integer("blocksize", 0);
  if (shape.rank() != 4 || block < 1 || shape.height() % block != 0 || shape.width() % block != 0)
    node.refuse("it cuts {} into blocks of {}", sample_text(shape), block);
  const std::int64_t channels = shape.channels(), h = shape.height() / block, w = shape.width() / block;
  Operations& operations = node.operations();
  const Made blocks = operations.reshape(node.made(0), {1, channels, h, block, w, block}, &node.node());
  const Made moved =
      operations.layer(LayerKind::transpose, {blocks}, TransposeOptions{{0, 3, 5, 1, 2, 4}}, &node.node());
  node.give(operations.reshape(moved, {1, checked_multiply(channels, block * block), h, w}, &node.node()));
}

constexpr std::array kRearrangementWords{
    Word{"", "Reshape", lower_reshape},
    Word{"", "Flatten", lower_flatten},
    Word{"", "Squeeze", lower_squeeze},
    Word{"", "Unsqueeze", lower_unsqueeze},
    Word{"", "Transpose", lower_transpose},
    Word{"", "Expand", lower_expand},
    Word{"", "DepthToSpace", lower_depth_to_space},
    Word{"", "SpaceToDepth", lower_space_to_depth},
};

}  // namespace

std::span<const Word> rearrangement_words() { return kRearrangementWords; }

}  // namespace tide
