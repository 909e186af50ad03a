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

// Behind a bias that all channels of a group share, the same.
inline OperatorRecord group_norm_record() {
  const auto norm = [](GroupNormOptions options) {
    return [options](Builder& net, Value x) { return net.group_norm(net.tanh(x), options); };
  };
  return {.kind = LayerKind::group_norm,
          .cases =
              {
                  {"group_norm", 3, {1, 6, 4, 3}, norm({.groups = 2})},
                  {"group_norm_one_group", 2, {1, 5, 3, 7}, norm({.groups = 1, .epsilon = 1e-3})},
                  {"group_norm_of_single_channels", 1, {1, 7, 5, 3}, norm({.groups = 7})},
                  {"group_norm_vector", 3, {1, 36, 1, 1}, norm({.groups = 4})},
                  {"group_norm_packs", 2, {1, 32, 5, 3}, norm({.groups = 8})},
                  {"group_norm_wide", 1, {1, 260, 2, 2}, norm({.groups = 1})},
                  {"group_norm_one_sample_large", 1, {1, 12, 40, 41}, norm({.groups = 3})},
                  {"group_norm_shared",
                   2,
                   {1, 4, 5, 5},
                   [](Builder& net, Value x) {
                     const Value first = net.group_norm(net.tanh(x), {.groups = 2}), second = net.tanh(first);
                     return net.sharing(first).group_norm(second, {.groups = 1});
                   }},
                  {"group_norm_frozen",
                   2,
                   {1, 4, 5, 3},
                   [](Builder& net, Value x) {
                     const Value y = net.tanh(x), normalized = net.freeze().group_norm(y, {.groups = 2});
                     return net.freeze(false).tanh(normalized);
                   }},
              },
          .large =
              {
                  {"large_group_norm", 3, kLargeSample, norm({.groups = 19})},
                  {"large_group_norm_of_two_samples", 2, {1, 24, 41, 43}, norm({.groups = 4})},
              },
          .grow =
              [](GrowingNetwork& net, Value x) {
                const std::int64_t channels = net.shape(x).channels();
                const std::int64_t groups = channels % 2 == 0 && net.chance(60) ? 2 : net.chance(50) ? channels : 1;
                net.produce(net.builder().group_norm(net.consume(x), {.groups = groups}));
              },
          .passes_nan = true};
}

}  // namespace tide::test
