// Functions of all elements along an axis.
#pragma once

#include "support/operators/record.h"

namespace tide::test {

inline OperatorRecord softmax_record() {
  const auto along = [](std::int64_t axis) {
    // What its input is gets gradients that add up to zero, which no bias in front of it can be measured by.
    return [=](Builder& net, Value x) { return net.softmax(net.tanh(x), {.axis = axis}); };
  };
  return {.kind = LayerKind::softmax,
          .cases =
              {
                  {"softmax", 3, {1, 7, 4, 3}, along(1)},
                  {"softmax_of_rows", 2, {1, 3, 5, 4}, along(2)},
                  {"softmax_of_columns", 2, {1, 3, 5, 4}, along(3)},
                  {"softmax_rank_three", 2, {1, 3, 6}, along(2)},
                  {"softmax_wide", 2, {1, 300, 2, 2}, along(1)},
              },
          .large =
              {
                  {"large_softmax", 3, kLargeSample, along(1)},
                  {"large_softmax_of_rows", 3, kLargeSample, along(2)},
              },
          .grow =
              [](GrowingNetwork& net, Value x) {
                const auto axis = net.pick(1, static_cast<std::int64_t>(net.shape(x).rank()) - 1);
                net.produce(net.builder().softmax(net.consume(x), {.axis = axis}));
              },
          .passes_nan = true};
}

inline OperatorRecord l2_normalize_record() {
  const auto along = [](std::int64_t axis, double epsilon) {
    return [=](Builder& net, Value x) { return net.l2_normalize(x, {.axis = axis, .epsilon = epsilon}); };
  };
  return {.kind = LayerKind::l2_normalize,
          .cases =
              {
                  {"l2_normalize", 3, {1, 7, 4, 3}, along(1, 1e-12)},
                  {"l2_normalize_of_rows", 2, {1, 3, 5, 4}, along(2, 1e-6)},
                  {"l2_normalize_bounded", 2, {1, 5, 3, 4}, along(1, 2.0)},
                  {"l2_normalize_wide", 2, {1, 300, 2, 2}, along(1, 1e-12)},
              },
          .large =
              {
                  {"large_l2_normalize", 3, kLargeSample, along(1, 1e-12)},
              },
          .grow =
              [](GrowingNetwork& net, Value x) {
                // A line that is all zeros has no direction, and its slope is that of the bound.
                net.produce(net.builder().l2_normalize(net.consume(x), {.axis = 1, .epsilon = 0.5}));
              },
          .passes_nan = true};
}

}  // namespace tide::test
