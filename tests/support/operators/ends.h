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
          }};
}

}  // namespace tide::test
