// Functions of one element with numbers of their own, and of two values that are spread to one shape.
#pragma once

#include "support/operators/record.h"

namespace tide::test {

inline OperatorRecord activation_record() {
  const auto of = [](ActivationOptions options) {
    return [options](Builder& net, Value x) { return net.activation(x, options); };
  };
  OperatorRecord record{.kind = LayerKind::activation, .cases = {}};
  for (std::size_t f = 0; f < EnumNames<ActivationFunction>::kNames.size(); ++f) {
    const auto function = static_cast<ActivationFunction>(f);
    const std::string name(enum_name(function));
    // Roots and exponentials of what is about one, so that results stay numbers.
    const bool positive = function == ActivationFunction::sqrt;
    record.cases.push_back({"function_" + name, 2, {1, 3, 7, 5}, [=](Builder& net, Value x) {
                              if (positive) x = net.activation(net.sigmoid(x), {ActivationFunction::affine, 2, 0.5});
                              return net.activation(x, function);
                            }});
  }
  const std::vector<std::pair<std::string, ActivationOptions>> others{
      {"clip_between", {ActivationFunction::clip, -0.5, 0.75}},
      {"leaky_relu_steep", {ActivationFunction::leaky_relu, 0.3}},
      {"leaky_relu_turned", {ActivationFunction::leaky_relu, -0.5}},
      {"elu_of_two", {ActivationFunction::elu, 2}},
      {"hard_sigmoid_other", {ActivationFunction::hard_sigmoid, 0.2, 0.4}},
      {"softplus_steep", {ActivationFunction::softplus, 3, 2}},
      {"affine_other", {ActivationFunction::affine, -1.5, 0.25}},
  };
  for (const auto& [name, options] : others) record.cases.push_back({"function_" + name, 3, {1, 5, 4, 3}, of(options)});
  record.large = {{"large_functions", 3, kLargeSample, [](Builder& net, Value x) {
                     return net.activation(net.activation(x, ActivationFunction::gelu), ActivationFunction::silu);
                   }}};
  record.grow = [](GrowingNetwork& net, Value x) {
    // Those that keep numbers small, whatever they are chained to.
    constexpr std::array kCalm{
        ActivationFunction::clip,         ActivationFunction::leaky_relu, ActivationFunction::elu,
        ActivationFunction::silu,         ActivationFunction::gelu,       ActivationFunction::gelu_tanh,
        ActivationFunction::hard_sigmoid, ActivationFunction::hard_swish, ActivationFunction::mish,
        ActivationFunction::softplus,     ActivationFunction::affine,     ActivationFunction::abs};
    const ActivationFunction function = kCalm[static_cast<std::size_t>(net.pick(0, std::ssize(kCalm) - 1))];
    net.produce(net.builder().activation(net.consume(x), function));
  };
  record.passes_nan = true;
  return record;
}

inline OperatorRecord combine_record() {
  OperatorRecord record{.kind = LayerKind::combine, .cases = {}};
  for (std::size_t f = 0; f < EnumNames<CombineFunction>::kNames.size(); ++f) {
    const auto function = static_cast<CombineFunction>(f);
    const std::string name(enum_name(function));
    // What divides stays away from zero.
    const auto second = [](Builder& net, Value x) {
      return net.activation(net.sigmoid(x), {ActivationFunction::affine, 1.5, 0.5});
    };
    record.cases.push_back({name + "_equal", 2, {1, 3, 5, 4}, [=](Builder& net, Value x) {
                              return net.combine(net.tanh(x), second(net, x), function);
                            }});
    record.cases.push_back({name + "_of_channels", 3, {1, 7, 5, 3}, [=](Builder& net, Value x) {
                              return net.combine(x, second(net, net.global_average_pool(x)), function);
                            }});
    record.cases.push_back({name + "_first_is_small", 2, {1, 4, 3, 5}, [=](Builder& net, Value x) {
                              return net.combine(net.global_average_pool(x), second(net, x), function);
                            }});
    record.cases.push_back({name + "_crosswise", 2, {1, 6, 4, 5}, [=](Builder& net, Value x) {
                              const Value rows = net.mean(x, {.axes = {3}, .keep = true});
                              const Value columns = net.mean(x, {.axes = {1, 2}, .keep = true});
                              // Without a function behind it, sums over the channels of the loss's gradient are zero.
                              return net.tanh(net.combine(rows, second(net, columns), function));
                            }});
  }
  record.cases.push_back({"combine_with_vector", 2, {1, 5, 3, 4}, [](Builder& net, Value x) {
                            return net.combine(x, net.fully_connected(x, {.channels = 5}), CombineFunction::multiply);
                          }});
  record.cases.push_back({"combine_rank_three", 3, {1, 5, 6}, [](Builder& net, Value x) {
                            x = net.tanh(x);
                            return net.combine(x, net.mean(x, {.axes = {2}, .keep = true}), CombineFunction::subtract);
                          }});
  record.cases.push_back({"combine_many_channels", 2, {1, 64, 5, 6}, [](Builder& net, Value x) {
                            const Value gate = net.sigmoid(net.global_average_pool(x));
                            return net.combine(net.tanh(x), gate, CombineFunction::multiply);
                          }});
  record.large = {{"large_combine", 3, kLargeSample,
                   [](Builder& net, Value x) {
                     const Value gate = net.sigmoid(net.global_average_pool(x));
                     return net.combine(net.tanh(x), gate, CombineFunction::multiply);
                   }},
                  {"large_combine_equal", 2, kLargeSample, [](Builder& net, Value x) {
                     return net.combine(net.tanh(x), net.sigmoid(x), CombineFunction::subtract);
                   }}};
  record.grow = [](GrowingNetwork& net, Value x) {
    constexpr std::array kCalm{CombineFunction::add, CombineFunction::subtract, CombineFunction::multiply};
    const CombineFunction function = kCalm[static_cast<std::size_t>(net.pick(0, 2))];
    net.consume(x);
    if (net.shape(x).rank() != 4 || net.chance(30)) {
      net.consume(x);
      return net.produce(net.builder().combine(x, net.builder().tanh(x), function));
    }
    net.consume(x);
    const Value gate = net.builder().sigmoid(net.builder().global_average_pool(x));
    net.produce(net.chance(50) ? net.builder().combine(x, gate, function) : net.builder().combine(gate, x, function));
  };
  record.passes_nan = true;
  return record;
}

inline OperatorRecord scale_record() {
  const auto scaled = [](ScaleOptions options) {
    return [options](Builder& net, Value x) { return net.scale(net.tanh(x), options); };
  };
  return {.kind = LayerKind::scale,
          .cases =
              {
                  {"scale", 3, {1, 5, 4, 3}, scaled({})},
                  {"scale_with_bias", 2, {1, 7, 3, 5}, scaled({.bias = true})},
                  {"scale_bias_alone", 2, {1, 4, 3, 3}, scaled({.weight = false, .bias = true})},
                  {"scale_everywhere", 2, {1, 3, 4, 5}, scaled({.axes = {1, 2, 3}, .bias = true})},
                  {"scale_of_columns", 3, {1, 3, 4, 5}, scaled({.axes = {3}})},
                  {"scale_of_rows", 3, {1, 3, 4, 5}, scaled({.axes = {1, 2}, .bias = true})},
                  {"scale_rank_three", 2, {1, 5, 6}, scaled({.axes = {2}})},
                  {"scale_many_channels", 2, {1, 132, 3, 3}, scaled({.bias = true})},
                  {"scale_shared",
                   2,
                   {1, 3, 5, 5},
                   [](Builder& net, Value x) {
                     const Value first = net.scale(net.tanh(x), {}), second = net.tanh(first);
                     return net.sharing(first).scale(second, {});
                   }},
              },
          .large =
              {
                  {"large_scale", 3, kLargeSample, scaled({.bias = true})},
              },
          .grow = [](GrowingNetwork& net,
                     Value x) { net.produce(net.builder().scale(net.consume(x), {.bias = net.chance(50)})); },
          .passes_nan = true};
}

}  // namespace tide::test
