// Normalizations.
#pragma once

#include "support/operators/record.h"

namespace tide::test {

inline OperatorRecord lrn_record() {
  return {.kind = LayerKind::lrn,
          .cases =
              {
                  {"lrn", 2, {1, 7, 4, 3}, [](Builder& net, Value x) { return net.lrn(x, {.size = 5, .alpha = 0.5}); }},
                  {"lrn_two_channels",
                   2,
                   {1, 2, 4, 3},
                   [](Builder& net, Value x) { return net.lrn(x, {.size = 5, .alpha = 1.5, .beta = 0.75, .k = 1}); }},
                  {"lrn_other_power",
                   1,
                   {1, 19, 3, 3},
                   [](Builder& net, Value x) { return net.lrn(x, {.size = 3, .alpha = 0.7, .beta = 0.6, .k = 1}); }},
              },
          .large =
              {
                  {"large_lrn", 3, kLargeSample, [](Builder& net, Value x) { return net.lrn(x, {.alpha = 0.5}); }},
              },
          .grow = [](GrowingNetwork& net, Value x) { net.produce(net.builder().lrn(net.consume(x), {.size = 3})); },
          .passes_nan = true};
}

// A batch norm right behind a bias would leave that bias a gradient of zero: hence the tanh.
inline OperatorRecord batch_norm_record() {
  return {
      .kind = LayerKind::batch_norm,
      .cases =
          {
              {"batch_norm", 3, {1, 5, 4, 3}, [](Builder& net, Value x) { return net.batch_norm(net.tanh(x)); }},
              {"batch_norm_one_sample",
               1,
               {1, 3, 7, 6},
               [](Builder& net, Value x) { return net.batch_norm(net.tanh(x), {.epsilon = 1e-3, .momentum = 0.25}); }},
              {"batch_norm_vector",
               3,
               {1, 37, 1, 1},
               [](Builder& net, Value x) { return net.batch_norm(net.tanh(x)); }},
              {"batch_norm_large",
               2,
               {1, 3, 40, 41},
               [](Builder& net, Value x) { return net.batch_norm(net.tanh(x)); }},
              {"batch_norm_shared",
               2,
               {1, 3, 5, 5},
               [](Builder& net, Value x) {
                 const Value first = net.batch_norm(net.tanh(x)), second = net.tanh(first);
                 return net.sharing(first).batch_norm(second);
               }},
          },
      .large =
          {
              {"large_batch_norm", 3, kLargeSample, [](Builder& net, Value x) { return net.batch_norm(net.tanh(x)); }},
          },
      .grow = [](GrowingNetwork& net, Value x) { net.produce(net.builder().batch_norm(net.consume(x))); },
      .passes_nan = true};
}

}  // namespace tide::test
