// Pools.
#pragma once

#include "support/operators/record.h"

namespace tide::test {

inline OperatorRecord max_pool_record() {
  const auto maximum = [](PoolOptions options) {
    return [options](Builder& net, Value x) { return net.max_pool(x, options); };
  };
  return {.kind = LayerKind::max_pool,
          .cases =
              {
                  {"max_pool", 2, {1, 5, 6, 8}, maximum({.window = Window::square(2, 2)})},
                  {"max_pool_overlapping", 2, {1, 3, 9, 9}, maximum({.window = Window::square(3, 2, 1)})},
                  {"max_pool_round_up", 3, {1, 2, 6, 7}, maximum({.window = Window::square(3, 2), .round_up = true})},
                  {"max_pool_rectangle", 1, {1, 7, 7, 8}, maximum({.window = window(2, 3, 1, 2, 0, 1, 1, 0)})},
                  {"max_pool_dilated", 2, {1, 3, 9, 8}, maximum({.window = window(3, 2, 2, 1, 1, 0, 1, 0, 2, 3)})},
                  {"max_pool_gaps", 2, {1, 4, 9, 9}, maximum({.window = Window::square(2, 3)})},
                  {"max_pool_many_channels", 1, {1, 131, 5, 5}, maximum({.window = Window::square(3, 1, 1)})},
                  {"max_pool_256_positions", 1, {1, 2, 17, 18}, maximum({.window = Window::square(16, 1)})},
                  {"max_pool_of_ties",
                   2,
                   {1, 3, 8, 8},
                   [](Builder& net, Value x) { return net.max_pool(net.relu(x), {.window = Window::square(3, 2)}); }},
              },
          .large =
              {
                  {"large_max_pool", 3, kLargeSample,
                   [](Builder& net, Value x) { return net.max_pool(x, {.window = Window::square(3, 2, 1)}); }},
              },
          .grow =
              [](GrowingNetwork& net, Value x) {  // any pool
                if (net.shape(x).height() < 3 || net.shape(x).width() < 3)
                  return net.produce(net.builder().global_average_pool(net.consume(x)));
                const PoolOptions options{.window = Window::square(3, net.pick(1, 2), 1),
                                          .round_up = net.chance(30),
                                          .count_padding = net.chance(50)};
                net.produce(net.chance(60) ? net.builder().max_pool(net.consume(x), options)
                                           : net.builder().average_pool(net.consume(x), options));
              },
          .passes_nan = true};
}

inline OperatorRecord average_pool_record() {
  const auto average = [](PoolOptions options) {
    return [options](Builder& net, Value x) { return net.average_pool(x, options); };
  };
  return {.kind = LayerKind::average_pool,
          .cases =
              {
                  {"average_pool", 2, {1, 5, 6, 8}, average({.window = Window::square(2, 2)})},
                  {"average_pool_padded", 2, {1, 3, 7, 9}, average({.window = Window::square(3, 2, 1)})},
                  {"average_pool_count_padding",
                   2,
                   {1, 3, 7, 9},
                   average({.window = Window::square(3, 2, 1), .count_padding = true})},
                  {"average_pool_round_up",
                   2,
                   {1, 3, 6, 8},
                   average({.window = window(3, 3, 2, 2, 1, 1, 1, 1), .round_up = true, .count_padding = true})},
                  {"average_pool_asymmetric", 1, {1, 4, 6, 5}, average({.window = window(3, 2, 2, 1, 0, 1, 2, 0)})},
              },
          .large = {
              {"large_average_pool", 3, kLargeSample,
               [](Builder& net, Value x) { return net.average_pool(x, {.window = Window::square(3, 2, 1)}); }},
          }};
}

inline OperatorRecord global_average_pool_record() {
  return {.kind = LayerKind::global_average_pool,
          .cases =
              {
                  {"global_average_pool",
                   3,
                   {1, 7, 5, 3},
                   [](Builder& net, Value x) { return net.global_average_pool(x); }},
                  {"global_average_pool_large",
                   1,
                   {1, 3, 23, 19},
                   [](Builder& net, Value x) { return net.global_average_pool(x); }},
              },
          .large = {
              {"large_global_pool", 3, kLargeSample, [](Builder& net, Value x) { return net.global_average_pool(x); }},
          }};
}

}  // namespace tide::test
