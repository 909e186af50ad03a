// Residual networks whose depth is asked for: "resnet:6,32,?,6".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tide {

inline constexpr std::int64_t kMostResidualUnits = 100'000;

// True for a model with one number left open; throws an Error where it is no ResNet.
[[nodiscard]] bool has_unknown(std::string_view model);
// The model with `n` in its place.
[[nodiscard]] std::string with_unknown(std::string_view model, std::int64_t n);
// As SuperNeurons counts: 3 (n1 + n2 + n3 + n4) + 2. REQUIRES: "resnet:A,B,C,D".
[[nodiscard]] std::int64_t residual_depth(std::string_view model);

}  // namespace tide
