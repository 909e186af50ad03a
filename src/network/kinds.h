// Which kinds of layers there are. Everything about a kind is its options (options.h), its
// description (kind.h), a function of the Builder, and a kernel in each backend.
#pragma once

#include <optional>
#include <string_view>

#include "network/options.h"

namespace tide {

// The list that all tables over kinds are made from: what a new entry lacks, the compiler or the
// linker calls by name. Numbers are in plan files, so new kinds go to the end.
// A fork copies its input once per consumer; the `superneurons` rule set makes it.
// clang-format off
#define TIDE_LAYER_KINDS(each) \
  each(input)                  \
  each(convolution)            \
  each(transposed_convolution) \
  each(fully_connected)        \
  each(max_pool)               \
  each(average_pool)           \
  each(global_average_pool)    \
  each(relu)                   \
  each(sigmoid)                \
  each(tanh)                   \
  each(softmax_cross_entropy)  \
  each(lrn)                    \
  each(batch_norm)             \
  each(dropout)                \
  each(add)                    \
  each(multiply)               \
  each(concat)                 \
  each(split)                  \
  each(flatten)                \
  each(fork)                   \
  each(group_norm)             \
  each(activation)             \
  each(combine)                \
  each(scale)                  \
  each(mean)                   \
  each(adaptive_average_pool)  \
  each(resize)                 \
  each(pad)                    \
  each(channel_shuffle)        \
  each(transpose)              \
  each(reshape)                \
  each(drop_path)              \
  each(softmax)                \
  each(l2_normalize)           \
  each(sigmoid_cross_entropy)  \
  each(mean_squared_error)
// clang-format on

enum class LayerKind : std::uint8_t {
#define TIDE_ENUMERATOR(kind) kind,
  TIDE_LAYER_KINDS(TIDE_ENUMERATOR)
#undef TIDE_ENUMERATOR
};
#define TIDE_ONE(kind) +1
inline constexpr int kLayerKinds = 0 TIDE_LAYER_KINDS(TIDE_ONE);
#undef TIDE_ONE
inline constexpr auto kLastLayerKind = static_cast<LayerKind>(kLayerKinds - 1);

[[nodiscard]] std::string_view kind_name(LayerKind kind);
// The kind of that name, or nothing.
[[nodiscard]] std::optional<LayerKind> kind_from_name(std::string_view name);

}  // namespace tide
