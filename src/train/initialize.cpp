#include "train/initialize.h"

#include <cmath>
#include <numbers>

#include "base/random.h"

namespace tide {

std::vector<float> initial_values(const Network& network, ParameterId id, std::uint64_t seed) {
  const Parameter& parameter = network.parameters[id.index()];
  std::vector<float> values(static_cast<std::size_t>(parameter.shape.elements()), 0.0F);
  switch (parameter.role) {
    case ParameterRole::scale:
    case ParameterRole::running_variance: values.assign(values.size(), 1.0F); break;
    case ParameterRole::bias:
    case ParameterRole::shift:
    case ParameterRole::running_mean: break;
    case ParameterRole::weight: {
      const double deviation = std::sqrt(2.0 / static_cast<double>(parameter.fan_in));
      for (std::size_t i = 0; i < values.size(); i += 2) {
        const Random4 block =
            random_block(seed, RandomUse::initialization, 0, static_cast<std::uint32_t>(id.index()), 0, i / 2);
        // Box-Muller: two uniform numbers give two normal ones. 1 - u is never zero.
        const double radius = deviation * std::sqrt(-2 * std::log(1 - static_cast<double>(to_unit(block[0]))));
        const double angle = 2 * std::numbers::pi * static_cast<double>(to_unit(block[1]));
        values[i] = static_cast<float>(radius * std::cos(angle));
        if (i + 1 < values.size()) values[i + 1] = static_cast<float>(radius * std::sin(angle));
      }
      break;
    }
  }
  return values;
}

}  // namespace tide
