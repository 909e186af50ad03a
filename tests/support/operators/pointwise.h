// Functions of single elements.
#pragma once

#include "support/operators/record.h"

namespace tide::test {

inline OperatorRecord relu_record() {
  return {.kind = LayerKind::relu,
          .cases =
              {
                  {"relu", 2, {1, 3, 7, 6}, [](Builder& net, Value x) { return net.relu(x); }},
              },
          .large =
              {
                  {"large_activations", 3, kLargeSample,
                   [](Builder& net, Value x) { return net.sigmoid(net.tanh(net.relu(x))); }},
              },
          .grow = [](GrowingNetwork& net, Value x) { net.produce(net.builder().relu(net.consume(x))); },
          .passes_nan = true};
}

inline OperatorRecord sigmoid_record() {
  return {
      .kind = LayerKind::sigmoid,
      .cases =
          {
              {"sigmoid", 3, {1, 3, 5, 6}, [](Builder& net, Value x) { return net.sigmoid(x); }},
          },
      .grow =
          [](GrowingNetwork& net, Value x) {  // or tanh
            net.produce(net.chance(50) ? net.builder().sigmoid(net.consume(x)) : net.builder().tanh(net.consume(x)));
          },
      .passes_nan = true};
}

inline OperatorRecord tanh_record() {
  return {.kind = LayerKind::tanh,
          .cases =
              {
                  {"tanh", 1, {1, 5, 7, 3}, [](Builder& net, Value x) { return net.tanh(x); }},
              },
          .passes_nan = true};
}

inline OperatorRecord dropout_record() {
  return {
      .kind = LayerKind::dropout,
      .cases =
          {
              {"dropout", 3, {1, 3, 5, 7}, [](Builder& net, Value x) { return net.dropout(x, {.rate = 0.3}); }},
              {"dropout_large", 2, {1, 64, 9, 8}, [](Builder& net, Value x) { return net.dropout(x); }},
          },
      .large =
          {
              {"large_dropout", 3, kLargeSample, [](Builder& net, Value x) { return net.dropout(x, {.rate = 0.2}); }},
          },
      .grow = [](GrowingNetwork& net, Value x) { net.produce(net.builder().dropout(net.consume(x), {.rate = 0.3})); }};
}

}  // namespace tide::test
