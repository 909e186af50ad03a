// The cases of the operator table together, and networks for what is more than one operator: fused
// layers, and sizes past the caches.
#pragma once

#include <fmt/core.h>

#include <set>

#include "support/operators.h"

namespace tide::test {

// Values that are no images, by all that does not ask for one.
inline std::vector<NetworkCase> rank_cases() {
  const auto mixed = [](Builder& net, Value x) {
    const std::vector<Value> parts = net.split(net.tanh(x), {2, 3});
    x = net.concat({net.relu(parts[1]), net.sigmoid(parts[0])});
    return net.dropout(net.lrn(net.batch_norm(net.add({x, net.multiply(x, x)})), {.size = 3}), {.rate = 0.3});
  };
  const auto product = [](Builder& net, Value x) { return net.fully_connected(net.tanh(x), {.channels = 4}); };
  std::vector<NetworkCase> cases;
  for (const Shape& sample : {Shape{1, 5}, Shape{1, 5, 6}, Shape{1, 5, 2, 3, 2}, Shape{1, 5, 2, 1, 3, 2}}) {
    cases.push_back({fmt::format("rank_{}", sample.rank()), 3, sample, mixed});
    cases.push_back({fmt::format("rank_{}_product", sample.rank()), 3, sample, product});
    cases.push_back({fmt::format("rank_{}_flat", sample.rank()), 3, sample,
                     [=](Builder& net, Value x) { return product(net, net.flatten(x)); }});
    cases.push_back({fmt::format("rank_{}_pool", sample.rank()), 3, sample,
                     [](Builder& net, Value x) { return net.global_average_pool(net.tanh(x)); }});
  }
  // A vector is an image of one pixel.
  cases.push_back({"rank_2_and_4", 3, {1, 5, 3, 2}, [](Builder& net, Value x) {
                     const Value vector = net.fully_connected(x, {.channels = 5});
                     x = net.add({net.global_average_pool(x), net.tanh(vector)});
                     x = net.concat({vector, net.convolution(x, {.channels = 3})});
                     return net.convolution(net.tanh(x), {.channels = 4});
                   }});
  return cases;
}

inline std::vector<NetworkCase> all_cases() {
  std::vector<NetworkCase> all = rank_cases();
  for (const OperatorRecord& record : operator_table()) all.insert(all.end(), record.cases.begin(), record.cases.end());
  return all;
}

inline std::vector<NetworkCase> large_cases() {
  std::vector<NetworkCase> all;
  for (const OperatorRecord& record : operator_table()) all.insert(all.end(), record.large.begin(), record.large.end());
  return all;
}

// Where parts of the samples meet: all of batch norm, and a case of each other kind for its gradients.
inline std::vector<NetworkCase> parts_cases() {
  std::vector<NetworkCase> all;
  for (const OperatorRecord& record : operator_table())
    for (const NetworkCase& entry : record.cases) {
      all.push_back(entry);
      if (record.kind != LayerKind::batch_norm) break;
    }
  return all;
}

// Such sums have no fixed order.
inline bool shares_batch_norm(const Network& network) {
  std::set<ParameterId> scales;
  for (const Layer& layer : network.layers)
    if (layer.kind == LayerKind::batch_norm && !scales.insert(layer.parameter(ParameterRole::scale)).second)
      return true;
  return false;
}

// What is fused with a batch norm, by channels: one at a time, or several in one load.
inline std::vector<NetworkCase> fused_cases() {
  using Body = std::function<Value(Builder&, Value)>;
  const auto norm = [](Builder& net, Value x) { return net.batch_norm(net.tanh(x)); };
  const auto joined = [=](Builder& net, Value x) { return net.add({norm(net, x), x}); };
  const auto consumed = [](Builder& net, Value y, bool thrice = false) {
    return thrice ? net.add({net.tanh(y), net.sigmoid(y), net.relu(y)}) : net.add({net.tanh(y), net.sigmoid(y)});
  };
  std::vector<std::pair<std::string, Body>> bodies{
      {"relu", [=](Builder& net, Value x) { return net.relu(norm(net, x)); }},
      {"add", [=](Builder& net, Value x) { return joined(net, x); }},
      {"add_relu", [=](Builder& net, Value x) { return net.relu(joined(net, x)); }},
      {"two_consumers", [=](Builder& net, Value x) { return consumed(net, norm(net, x)); }},
      {"relu_two_consumers", [=](Builder& net, Value x) { return consumed(net, net.relu(norm(net, x))); }},
      {"add_two_consumers", [=](Builder& net, Value x) { return consumed(net, joined(net, x)); }},
      {"add_relu_two_consumers", [=](Builder& net, Value x) { return consumed(net, net.relu(joined(net, x))); }},
      {"add_relu_three_consumers",
       [=](Builder& net, Value x) { return consumed(net, net.relu(joined(net, x)), true); }},
      {"frozen_relu",
       [=](Builder& net, Value x) {
         const Value y = net.tanh(x), normalized = net.freeze().batch_norm(y);
         return net.freeze(false).relu(normalized);
       }},
      {"frozen_add_relu",
       [=](Builder& net, Value x) {
         const Value y = net.tanh(x), normalized = net.freeze().batch_norm(y);
         return net.freeze(false).relu(net.add({x, normalized}));
       }},
      {"shared_relu",
       [=](Builder& net, Value x) {
         const Value first = norm(net, x), second = net.tanh(net.relu(first));
         return net.relu(net.sharing(first).batch_norm(second));
       }},
  };
  for (const ActivationFunction function :
       {ActivationFunction::clip, ActivationFunction::silu, ActivationFunction::hard_swish}) {
    const std::string name(enum_name(function));
    bodies.push_back({name, [=](Builder& net, Value x) { return net.activation(norm(net, x), function); }});
    bodies.push_back({name + "_two_consumers",
                      [=](Builder& net, Value x) { return consumed(net, net.activation(norm(net, x), function)); }});
  }
  bodies.push_back({"clip_between", [=](Builder& net, Value x) {
                      return net.activation(norm(net, x), {ActivationFunction::clip, -0.25, 0.5});
                    }});
  bodies.push_back(
      {"add_clip", [=](Builder& net, Value x) { return net.activation(joined(net, x), ActivationFunction::clip); }});
  std::vector<NetworkCase> cases;
  for (const auto& [name, body] : bodies)
    for (const std::int64_t channels : {1, 3, 7, 20, 32})
      cases.push_back({fmt::format("{}_{}", name, channels), 3, {1, channels, 6, 5}, body});
  cases.push_back({"large_add_relu_two_consumers", 3, {1, 24, 41, 43}, bodies[6].second});
  cases.push_back({"large_relu", 3, {1, 19, 41, 43}, bodies[0].second});
  cases.push_back({"large_silu", 3, {1, 24, 41, 43}, [=](Builder& net, Value x) {
                     return net.activation(norm(net, x), ActivationFunction::silu);
                   }});
  return cases;
}

// Large enough to be written past the caches.
inline NetworkCase huge_case() {
  return {"huge", 3, {1, 2, 600, 600}, [](Builder& net, Value x) { return net.batch_norm(net.relu(x)); }};
}

}  // namespace tide::test
