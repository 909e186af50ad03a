#include <algorithm>

#include "foreign/patterns.h"

namespace tide {

std::optional<Made> join_padding(Operations& operations, const Operation& added) {
  if (added.piece != Piece::none) return std::nullopt;
  const bool pools = added.kind == LayerKind::average_pool;
  if (!pools && added.kind != LayerKind::convolution) return std::nullopt;
  const Operation* const padded = operations.as(added.inputs[0], LayerKind::pad);
  if (padded == nullptr) return std::nullopt;
  const auto& pad = std::get<PadOptions>(padded->options);
  const auto is_negative = [](std::int64_t n) { return n < 0; };
  if (pad.mode != PadMode::constant || pad.value != 0 || pad.before.size() != 3 || pad.before[0] != 0 ||
      pad.after[0] != 0 || std::any_of(pad.before.begin(), pad.before.end(), is_negative) ||
      std::any_of(pad.after.begin(), pad.after.end(), is_negative))
    return std::nullopt;
  Operation joined = added;
  Window& window =
      pools ? std::get<PoolOptions>(joined.options).window : std::get<ConvolutionOptions>(joined.options).window;
  if (pools) {
    // Zeros that the padding made count in the average, those of the window need not; and a rounded-up window may
    // hang over the end of what was padded.
    auto& options = std::get<PoolOptions>(joined.options);
    const bool has_own = window.pad_top != 0 || window.pad_left != 0 || window.pad_bottom != 0 || window.pad_right != 0;
    if (has_own || options.round_up) return std::nullopt;
    if (std::max(pad.before[1], pad.after[1]) >= window.kernel_height ||
        std::max(pad.before[2], pad.after[2]) >= window.kernel_width)
      return std::nullopt;
    options.count_padding = true;
  }
  window.pad_top += pad.before[1];
  window.pad_left += pad.before[2];
  window.pad_bottom += pad.after[1];
  window.pad_right += pad.after[2];
  joined.inputs = {padded->inputs[0]};
  joined.outputs.clear();
  return operations.add(std::move(joined));
}

}  // namespace tide
