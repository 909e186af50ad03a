// Of what vDNN could swap: which layers one of several devices does swap, and when they come back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace tide {

// Staggering (Y. Kim et al., 2018): within a link group, devices that share a link to their host, the i-th device swaps
// only the layers i % x + j * x, 0 <= j < b, of the a layers that could be swapped, counted from 0 in the order of the
// forward pass; x = a / b.
//
// The paper leaves open:
//   - how a / b is rounded: down, at least 1, so that b layers can be swapped (up might leave fewer);
//   - more devices than x: i % x wraps, so that devices i and i + x swap the same layers, as the formula says.
struct StaggerOptions {
  std::int32_t layers = -1;  // b; 0: none; below 0: all, on every device, as without staggering
  std::int32_t index = 0;    // i: which device of its group it is
  // Staggering of our own: these layers instead, whatever b and i are.
  std::optional<std::vector<std::int32_t>> only = {};
};

// Whether layer `layer` of `all` is swapped.
[[nodiscard]] inline bool is_swapped(const StaggerOptions& options, std::int32_t layer, std::int32_t all) {
  if (options.only) return std::ranges::find(*options.only, layer) != options.only->end();
  if (options.layers < 0) return true;
  if (options.layers == 0 || all == 0) return false;
  const std::int32_t interval = all / options.layers > 1 ? all / options.layers : 1;
  return layer % interval == options.index % interval && layer / interval < options.layers;
}

// When swapped inputs come back. A trigger is the op that a swap-in waits for: the last one of a layer of the backward
// pass (or of the forward pass, if it is early).
inline constexpr std::int32_t kNoTrigger = INT32_MAX;
struct TriggerOptions {
  // None: vDNN's, each copy in step with one layer. Else by layer that is swapped, in the order in which they leave: so
  // many layers before the one that needs it (0: right before it; those beyond the list too). kNoTrigger: as soon as it
  // is out. Copies then hold no layer up that does not need them.
  std::optional<std::vector<std::int32_t>> early = {};
};

}  // namespace tide
