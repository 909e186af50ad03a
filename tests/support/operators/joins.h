// Layers with several inputs or outputs, and those that change only the shape.
#pragma once

#include "support/operators/record.h"

namespace tide::test {

inline OperatorRecord add_record() {
  return {.kind = LayerKind::add,
          .cases =
              {
                  {"add",
                   2,
                   {1, 3, 5, 5},
                   [](Builder& net, Value x) {
                     return net.add({x, net.tanh(x)});
                   }},
                  {"add_three",
                   2,
                   {1, 3, 5, 5},
                   [](Builder& net, Value x) {
                     return net.add({net.tanh(x), net.sigmoid(x), net.relu(x)});
                   }},
              },
          .large =
              {
                  {"large_add", 3, kLargeSample,
                   [](Builder& net, Value x) {
                     return net.add({net.tanh(x), net.relu(x), x});
                   }},
              },
          .grow =
              [](GrowingNetwork& net, Value x) {  // or multiply
                std::vector<Value> same{x};
                for (const Value& other : net.values())
                  if (other != x && net.shape(other) == net.shape(x) && same.size() < 3 && net.chance(60))
                    same.push_back(other);
                if (same.size() == 1) same.push_back(x);  // x + x and x * x are networks too
                const bool product = net.chance(35);
                if (product && same.size() == 3) same.pop_back();
                for (const Value& value : same) net.consume(value);
                net.produce(product ? net.builder().multiply(same[0], same[1]) : net.builder().add(same));
              },
          .passes_nan = true};
}

inline OperatorRecord multiply_record() {
  return {.kind = LayerKind::multiply,
          .cases =
              {
                  {"multiply",
                   2,
                   {1, 3, 5, 5},
                   [](Builder& net, Value x) { return net.multiply(net.tanh(x), net.sigmoid(x)); }},
                  {"square", 2, {1, 3, 5, 5}, [](Builder& net, Value x) { return net.multiply(x, x); }},
              },
          .large = {
              {"large_multiply", 3, kLargeSample,
               [](Builder& net, Value x) { return net.multiply(net.tanh(x), net.relu(x)); }},
          }};
}

inline OperatorRecord concat_record() {
  return {.kind = LayerKind::concat,
          .cases =
              {
                  {"concat",
                   2,
                   {1, 3, 5, 4},
                   [](Builder& net, Value x) {
                     return net.concat({net.tanh(x), net.convolution(x, {.channels = 5}), net.sigmoid(x)});
                   }},
              },
          .large =
              {
                  {"large_concat", 3, kLargeSample,
                   [](Builder& net, Value x) {
                     return net.concat({net.tanh(x), net.relu(x)});
                   }},
              },
          .grow = [](GrowingNetwork& net, Value x) {
            std::vector<Value> inputs{x};
            for (const Value& other : net.values())
              if (other != x && net.shape(other).height() == net.shape(x).height() &&
                  net.shape(other).width() == net.shape(x).width() && inputs.size() < 3 && net.chance(50))
                inputs.push_back(other);
            if (inputs.size() == 1) return net.produce(net.builder().relu(net.consume(x)));
            for (const Value& value : inputs) net.consume(value);
            net.produce(net.builder().concat(inputs));
          }};
}

inline OperatorRecord split_record() {
  return {.kind = LayerKind::split,
          .cases =
              {
                  {"split",
                   2,
                   {1, 7, 5, 4},
                   [](Builder& net, Value x) {
                     const std::vector<Value> parts = net.split(x, {2, 4, 1});
                     return net.concat({net.tanh(parts[2]), parts[0], net.sigmoid(parts[1])});
                   }},
                  {"gates",
                   3,
                   {1, 12, 1, 1},
                   [](Builder& net, Value x) {
                     const std::vector<Value> parts = net.split(net.fully_connected(x, {.channels = 12}), {4, 4, 4});
                     return net.multiply(net.sigmoid(parts[0]),
                                         net.tanh(net.multiply(net.sigmoid(parts[1]), net.tanh(parts[2]))));
                   }},
              },
          .grow = [](GrowingNetwork& net, Value x) {
            const std::int64_t channels = net.shape(x).channels();
            if (channels < 2) return net.produce(net.builder().tanh(net.consume(x)));
            const std::int64_t first = net.pick(1, channels - 1);
            for (const Value& value : net.builder().split(net.consume(x), {first, channels - first}))
              net.produce(value);
          }};
}

inline OperatorRecord flatten_record() {
  return {.kind = LayerKind::flatten,
          .cases = {
              {"fully_connected_flat",
               2,
               {1, 5, 3, 2},
               [](Builder& net, Value x) { return net.fully_connected(net.flatten(x), {.channels = 33}); }},
          }};
}

// Made by the rules `superneurons` behind a value with several consumers.
inline OperatorRecord fork_record() {
  return {.kind = LayerKind::fork,
          .cases = {
              {"fan",
               2,
               {1, 3, 5, 4},
               [](Builder& net, Value x) {
                 const Value y = net.tanh(x);
                 return net.concat({net.sigmoid(y), y, net.relu(y)});
               }},
          }};
}

}  // namespace tide::test
