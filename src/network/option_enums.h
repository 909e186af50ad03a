// Options that are one of several named things. Numbers are in fingerprints, so new names go to the end.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tide {

// The names of an enum's values, and what it is called in messages.
template <typename Enum>
struct EnumNames;
template <typename Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires {
  EnumNames<Enum>::kNames;
};
template <NamedEnum Enum>
[[nodiscard]] constexpr std::string_view enum_name(Enum value) {
  return EnumNames<Enum>::kNames[static_cast<std::size_t>(value)];
}

// Of single elements. What alpha and beta are, where a function has them:
enum class ActivationFunction : std::uint8_t {
  clip,          // min(max(x, alpha), beta)
  leaky_relu,    // x, or alpha * x below 0
  elu,           // x, or alpha * (e^x - 1) below 0
  silu,          // x * sigmoid(x)
  gelu,          // x * the normal distribution's share below x
  gelu_tanh,     // the same by its usual approximation
  hard_sigmoid,  // alpha * x + beta, between 0 and 1
  hard_swish,    // x * (x / 6 + 1/2, between 0 and 1)
  mish,          // x * tanh(softplus(x))
  softplus,      // log(1 + e^(alpha x)) / alpha; x where alpha x is above beta
  affine,        // alpha * x + beta
  square,
  exp,
  sqrt,
  abs,
};
template <>
struct EnumNames<ActivationFunction> {
  static constexpr std::string_view kWhat = "function of one value";
  static constexpr std::array<std::string_view, 15> kNames{
      "clip", "leaky_relu", "elu",    "silu",   "gelu", "gelu_tanh", "hard_sigmoid", "hard_swish",
      "mish", "softplus",   "affine", "square", "exp",  "sqrt",      "abs"};
};

enum class CombineFunction : std::uint8_t { add, subtract, multiply, divide };
template <>
struct EnumNames<CombineFunction> {
  static constexpr std::string_view kWhat = "function of two values";
  static constexpr std::array<std::string_view, 4> kNames{"add", "subtract", "multiply", "divide"};
};

enum class ResizeMode : std::uint8_t { nearest, bilinear };
template <>
struct EnumNames<ResizeMode> {
  static constexpr std::string_view kWhat = "way to resize";
  static constexpr std::array<std::string_view, 2> kNames{"nearest", "bilinear"};
};

// Where the middle of an output element lies in the input. `nearest` takes the element at or below it.
enum class ResizeCoordinates : std::uint8_t {
  half_pixel,     // (i + 1/2) * scale - 1/2; of `nearest` (i + 1/2) * scale
  align_corners,  // the corners are on each other
  asymmetric,     // i * scale
};
template <>
struct EnumNames<ResizeCoordinates> {
  static constexpr std::string_view kWhat = "kind of coordinates";
  static constexpr std::array<std::string_view, 3> kNames{"half_pixel", "align_corners", "asymmetric"};
};

enum class PadMode : std::uint8_t { constant, reflect, replicate };
template <>
struct EnumNames<PadMode> {
  static constexpr std::string_view kWhat = "way to pad";
  static constexpr std::array<std::string_view, 3> kNames{"constant", "reflect", "replicate"};
};

// What a batch norm does to its result (step/fuse.h).
enum class FusedFunction : std::uint8_t { none, relu, clip, silu, hard_swish };
template <>
struct EnumNames<FusedFunction> {
  static constexpr std::string_view kWhat = "fused function";
  static constexpr std::array<std::string_view, 5> kNames{"none", "relu", "clip", "silu", "hard_swish"};
};

}  // namespace tide
