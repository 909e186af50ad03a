#include <algorithm>

#include "foreign/patterns.h"

namespace tide {
namespace {

// [C, H, W] -> [G, C / G, H, W] -> [C / G, G, H, W] -> [C, H, W]
std::optional<Made> channel_shuffle(Operations& operations, Made transposed, const Shape& result,
                                    const ForeignNode* node) {
  const Operation* const transpose = operations.as(transposed, LayerKind::transpose);
  if (transpose == nullptr || result.rank() < 3) return std::nullopt;
  std::vector<std::int64_t> swapped(result.rank() + 1);
  for (std::size_t i = 0; i < swapped.size(); ++i) swapped[i] = static_cast<std::int64_t>(i);
  std::swap(swapped[1], swapped[2]);
  if (std::get<TransposeOptions>(transpose->options).axes != swapped) return std::nullopt;
  const Operation* const reshape = operations.as(transpose->inputs[0], LayerKind::reshape);
  if (reshape == nullptr || operations.shape(reshape->inputs[0]) != result) return std::nullopt;
  const Shape& groups = reshape->outputs[0];
  if (!std::ranges::equal(groups.extents().subspan(3), result.extents().subspan(2))) return std::nullopt;
  return operations.layer(LayerKind::channel_shuffle, {reshape->inputs[0]}, ShuffleOptions{groups.extent(1)}, node);
}

// [C, H, W] -> [G, C / G * H * W], each of them normalized, -> [C, H, W]
std::optional<Made> grouped_norm(Operations& operations, Made normalized, const Shape& result,
                                 const ForeignNode* node) {
  const Operation* const norm = operations.as(normalized, LayerKind::group_norm);
  if (norm == nullptr || norm->parameters.size() != 2) return std::nullopt;
  const std::int64_t groups = norm->outputs[0].channels(), channels = result.channels();
  const Operation* const reshape = operations.as(norm->inputs[0], LayerKind::reshape);
  if (reshape == nullptr || operations.shape(reshape->inputs[0]) != result || channels % groups != 0 ||
      std::get<GroupNormOptions>(norm->options).groups != groups)
    return std::nullopt;
  const auto is_all = [](const Array& array, double value) {
    if (!array.name.empty()) return false;
    const std::vector<double> values = doubles_of(array);
    return std::all_of(values.begin(), values.end(), [&](double v) { return v == value; });
  };
  if (!is_all(norm->parameters[0].array, 1) || !is_all(norm->parameters[1].array, 0)) return std::nullopt;
  const auto count = static_cast<std::size_t>(channels);
  Operation joined = *norm;
  joined.inputs = {reshape->inputs[0]};
  joined.outputs.clear();
  joined.parameters[0].array = made_array(std::vector<double>(count, 1), {channels});
  joined.parameters[1].array = made_array(std::vector<double>(count, 0), {channels});
  joined.last = node;
  return operations.append(std::move(joined));
}

std::optional<Made> join_reshape(Operations& operations, const Operation& added) {
  const Made x = added.inputs[0];
  const Shape& result = std::get<ReshapeOptions>(added.options).sample;
  if (operations.shape(x) == result) return x;
  if (const auto shuffle = channel_shuffle(operations, x, result, added.node)) return shuffle;
  if (const auto norm = grouped_norm(operations, x, result, added.node)) return norm;
  for (const LayerKind kind : {LayerKind::reshape, LayerKind::flatten})
    if (const Operation* const before = operations.as(x, kind)) {
      // A flattened value of one position has its elements in row-major order, as all others have theirs.
      if (kind == LayerKind::flatten && operations.shape(before->inputs[0]).positions() != 1) continue;
      return operations.reshape(before->inputs[0], result, added.node);
    }
  // Nothing moves where there is one position.
  if (result.rank() == 2 && operations.shape(x).positions() == 1)
    return operations.layer(LayerKind::flatten, {x}, NoOptions{}, added.node);
  return std::nullopt;
}

std::optional<Made> join_transpose(Operations& operations, const Operation& added) {
  const std::vector<std::int64_t>& axes = std::get<TransposeOptions>(added.options).axes;
  if (std::is_sorted(axes.begin(), axes.end())) return added.inputs[0];
  const Operation* const before = operations.as(added.inputs[0], LayerKind::transpose);
  if (before == nullptr) return std::nullopt;
  const std::vector<std::int64_t>& first = std::get<TransposeOptions>(before->options).axes;
  std::vector<std::int64_t> both;
  for (const std::int64_t axis : axes) both.push_back(first[static_cast<std::size_t>(axis)]);
  return operations.layer(LayerKind::transpose, {before->inputs[0]}, TransposeOptions{both}, added.node);
}

bool is_of_single_elements(const Operation& operation) {
  if (operation.piece == Piece::erf || operation.piece == Piece::cube) return true;
  if (operation.piece != Piece::none) return false;
  switch (operation.kind) {
    case LayerKind::relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::activation:
    case LayerKind::dropout: return true;
    default: return false;
  }
}

// Layers that work on channels alone, whatever stands behind them.
bool is_of_channels(LayerKind kind) { return kind == LayerKind::batch_norm || kind == LayerKind::drop_path; }

}  // namespace

std::optional<Made> join_rearrangements(Operations& operations, const Operation& added) {
  if (added.piece != Piece::none) return std::nullopt;
  if (added.kind == LayerKind::reshape) return join_reshape(operations, added);
  if (added.kind == LayerKind::transpose) return join_transpose(operations, added);
  return std::nullopt;
}

std::optional<Made> hoist_functions(Operations& operations, const Operation& added) {
  if (added.inputs.size() != 1) return std::nullopt;
  const Operation* const reshape = operations.as(added.inputs[0], LayerKind::reshape);
  if (reshape == nullptr) return std::nullopt;
  const Made source = reshape->inputs[0];
  const Shape result = reshape->outputs[0];
  const bool same_channels = operations.shape(source).channels() == result.channels();
  const bool of_channels = added.piece == Piece::none && is_of_channels(added.kind) && same_channels;
  if (!is_of_single_elements(added) && !of_channels) return std::nullopt;
  Operation moved = added;
  moved.inputs = {source};
  moved.outputs.clear();
  const Made made = operations.add(std::move(moved));
  return operations.reshape(made, result, added.node);
}

}  // namespace tide
