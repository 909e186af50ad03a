// The numbers that the reference gradients were made with: every parameter, input and label
// is a function of a name and an index, the same here and in make_reference.py.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "network/network.h"

namespace tide::golden {

inline std::uint64_t name_key(std::string_view name) { return fnv_of(name); }

// Number `index` of the splitmix64 stream whose seed is `key`.
inline std::uint64_t hash(std::uint64_t key, std::int64_t index) {
  std::uint64_t z = key + (static_cast<std::uint64_t>(index) + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

// In [-1, 1).
inline double uniform(std::uint64_t key, std::int64_t index) {
  return static_cast<double>(hash(key, index) >> 11) * 0x1p-52 - 1.0;
}

// Element `index`, in the logical order of the parameter's shape. All values are exact in
// single precision, so that both precisions start from the same numbers.
inline float parameter_value(const Parameter& parameter, std::uint64_t key, std::int64_t index) {
  const double u = uniform(key, index);
  switch (parameter.role) {
    case ParameterRole::weight: return static_cast<float>(u * std::sqrt(3.0 / static_cast<double>(parameter.fan_in)));
    case ParameterRole::bias: return static_cast<float>(0.1 * u);
    case ParameterRole::scale: return static_cast<float>(0.75 + 0.1 * u);
    case ParameterRole::shift: return static_cast<float>(1.0 + 0.1 * u);
    case ParameterRole::running_mean: return 0.0F;
    case ParameterRole::running_variance: return 1.0F;
  }
  return 0.0F;
}

inline std::vector<float> parameter_values(const Parameter& parameter) {
  const std::uint64_t key = name_key(parameter.name);
  std::vector<float> values(static_cast<std::size_t>(parameter.shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = parameter_value(parameter, key, static_cast<std::int64_t>(i));
  return values;
}

// Element `index` of the batch, counted in the order batch, channels, height, width.
inline float input_value(std::int64_t index) { return static_cast<float>(uniform(name_key("input"), index)); }

// Label `index` = sample * labels per sample + position.
inline std::int32_t label_value(std::int64_t index, std::int64_t classes) {
  return static_cast<std::int32_t>(hash(name_key("labels"), index) % static_cast<std::uint64_t>(classes));
}

// What is stored of a gradient: its norm and its products with four vectors of +1 and -1.
struct Summary {
  double norm = 0;
  std::array<double, 4> products = {};
};

// `values` in the logical order of the parameter's shape.
template <typename Number>
Summary summarize(const std::string& name, std::span<const Number> values) {
  const std::uint64_t key = name_key(name + "#signs");
  Summary summary;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]);
    const std::uint64_t bits = hash(key, static_cast<std::int64_t>(i));
    summary.norm += value * value;
    for (std::size_t j = 0; j < 4; ++j) summary.products[j] += ((bits >> (63 - j)) & 1) != 0 ? -value : value;
  }
  summary.norm = std::sqrt(summary.norm);
  return summary;
}

// The references were made without dropout: the layers stay, with a rate of 0.
inline Network without_dropout(Network network) {
  for (Layer& layer : network.layers)
    if (layer.kind == LayerKind::dropout) layer.options = DropoutOptions{.rate = 0};
  return network;
}

}  // namespace tide::golden
