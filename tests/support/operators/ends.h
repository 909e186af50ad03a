// Where networks begin and end.
#pragma once

#include "support/operators/record.h"

namespace tide::test {

inline OperatorRecord input_record() {
  return {.kind = LayerKind::input,
          .cases = {
              {"input", 3, {1, 5, 4, 3}, [](Builder&, Value x) { return x; }},
          }};
}

inline OperatorRecord softmax_cross_entropy_record() {
  return {.kind = LayerKind::softmax_cross_entropy,
          .cases = {
              {"loss_of_one_position", 3, {1, 7, 1, 1}, [](Builder&, Value x) { return x; }},
              {"two_losses",
               2,
               {1, 4, 3, 5},
               [](Builder& net, Value x) {
                 net.softmax_cross_entropy(net.global_average_pool(x),
                                           {.label_smoothing = 0.1, .weight = 0.3, .label_offset = 15});
                 return net.tanh(x);
               }},
              {"loss_of_probabilities",
               2,
               {1, 4, 3, 5},
               [](Builder& net, Value x) {
                 net.softmax_cross_entropy(net.global_average_pool(x),
                                           {.label_smoothing = 0.1, .label_offset = 15, .soft = true});
                 return net.tanh(x);
               }},
              {"loss_of_labels_that_count",
               2,
               {1, 4, 3, 5},
               [](Builder& net, Value x) {
                 net.softmax_cross_entropy(net.sigmoid(x), {.weight = 0.5, .label_offset = 15, .counted = true});
                 return net.tanh(x);
               }},
          }};
}

// Their labels stand behind those of the loss that every case ends in.
inline OperatorRecord sigmoid_cross_entropy_record() {
  return {.kind = LayerKind::sigmoid_cross_entropy,
          .cases =
              {
                  {"sigmoid_loss",
                   3,
                   {1, 7, 1, 1},
                   [](Builder& net, Value x) {
                     net.sigmoid_cross_entropy(x, {.label_offset = 1});
                     return net.tanh(x);
                   }},
                  {"sigmoid_loss_of_positions",
                   2,
                   {1, 4, 3, 5},
                   [](Builder& net, Value x) {
                     net.sigmoid_cross_entropy(x, {.weight = 0.3, .label_offset = 15});
                     return net.tanh(x);
                   }},
              },
          .large = {
              {"large_sigmoid_loss", 3, kLargeSample,
               [](Builder& net, Value x) {
                 net.sigmoid_cross_entropy(x, {.label_offset = 1});
                 return net.global_average_pool(net.tanh(x));
               }},
          }};
}

inline OperatorRecord mean_squared_error_record() {
  return {.kind = LayerKind::mean_squared_error,
          .cases =
              {
                  {"squared_error",
                   3,
                   {1, 7, 1, 1},
                   [](Builder& net, Value x) {
                     net.mean_squared_error(x, {.label_offset = 1});
                     return net.tanh(x);
                   }},
                  {"squared_error_of_positions",
                   2,
                   {1, 4, 3, 5},
                   [](Builder& net, Value x) {
                     net.mean_squared_error(net.sigmoid(x), {.weight = 0.3, .label_offset = 15});
                     return net.tanh(x);
                   }},
              },
          .large = {
              {"large_squared_error", 3, kLargeSample,
               [](Builder& net, Value x) {
                 net.mean_squared_error(x, {.label_offset = 1});
                 return net.global_average_pool(net.tanh(x));
               }},
          }};
}

}  // namespace tide::test
