// Elements in other places, averages of them, and whole samples that are dropped.
#pragma once

#include "support/operators/record.h"

namespace tide::test {

inline OperatorRecord mean_record() {
  const auto over = [](MeanOptions options) {
    return [options](Builder& net, Value x) { return net.mean(net.tanh(x), options); };
  };
  return {.kind = LayerKind::mean,
          .cases =
              {
                  {"mean", 3, {1, 7, 5, 3}, over({.axes = {2, 3}})},
                  {"mean_kept", 3, {1, 7, 5, 3}, over({.axes = {2, 3}, .keep = true})},
                  {"mean_of_channels", 2, {1, 6, 4, 5}, over({.axes = {1}, .keep = true})},
                  {"mean_of_rows", 2, {1, 3, 4, 5}, over({.axes = {2}})},
                  {"mean_of_columns", 2, {1, 3, 4, 5}, over({.axes = {3}, .keep = true})},
                  {"mean_of_all", 3, {1, 3, 4, 5}, over({.axes = {1, 2, 3}})},
                  {"mean_crosswise", 2, {1, 3, 4, 5}, over({.axes = {1, 3}})},
                  {"mean_rank_three", 2, {1, 5, 6}, over({.axes = {2}})},
                  {"mean_many_channels", 2, {1, 131, 7, 7}, over({.axes = {2, 3}})},
              },
          .large =
              {
                  {"large_mean", 3, kLargeSample, over({.axes = {2, 3}, .keep = true})},
                  {"large_mean_of_channels", 3, kLargeSample, over({.axes = {1}, .keep = true})},
              },
          .grow =
              [](GrowingNetwork& net, Value x) {
                const Shape& shape = net.shape(x);
                const auto axis = net.pick(1, static_cast<std::int64_t>(shape.rank()) - 1);
                net.produce(net.builder().mean(net.consume(x), {.axes = {axis}, .keep = true}));
              },
          .passes_nan = true};
}

inline OperatorRecord adaptive_average_pool_record() {
  const auto pooled = [](std::int64_t height, std::int64_t width) {
    return [=](Builder& net, Value x) { return net.adaptive_average_pool(net.tanh(x), {height, width}); };
  };
  return {.kind = LayerKind::adaptive_average_pool,
          .cases =
              {
                  {"adaptive", 2, {1, 5, 9, 7}, pooled(3, 2)},
                  {"adaptive_larger", 2, {1, 3, 4, 3}, pooled(7, 7)},
                  {"adaptive_one", 2, {1, 3, 5, 6}, pooled(1, 1)},
                  {"adaptive_same", 1, {1, 3, 5, 6}, pooled(5, 6)},
              },
          .large =
              {
                  {"large_adaptive", 3, kLargeSample, pooled(7, 6)},
              },
          .grow = [](GrowingNetwork& net, Value x) {
            if (net.shape(x).rank() != 4) return net.produce(net.builder().tanh(net.consume(x)));
            net.produce(net.builder().adaptive_average_pool(net.consume(x), {net.pick(1, 5), net.pick(1, 5)}));
          }};
}

inline OperatorRecord resize_record() {
  const auto resized = [](ResizeOptions options) {
    return [options](Builder& net, Value x) { return net.resize(net.tanh(x), options); };
  };
  constexpr auto kNearest = ResizeMode::nearest;
  constexpr auto kLinear = ResizeMode::bilinear;
  return {
      .kind = LayerKind::resize,
      .cases =
          {
              {"bilinear", 2, {1, 5, 4, 3}, resized({.height = 9, .width = 7})},
              {"bilinear_much_larger", 2, {1, 3, 3, 2}, resized({.height = 25, .width = 31})},
              {"bilinear_smaller", 2, {1, 3, 9, 8}, resized({.height = 4, .width = 3})},
              {"bilinear_corners",
               2,
               {1, 3, 4, 5},
               resized({.height = 9, .width = 1, .mode = kLinear, .coordinates = ResizeCoordinates::align_corners})},
              {"bilinear_asymmetric",
               2,
               {1, 3, 4, 5},
               resized({.height = 8, .width = 10, .mode = kLinear, .coordinates = ResizeCoordinates::asymmetric})},
              {"bilinear_scaled",
               2,
               {1, 3, 5, 5},
               resized({.height = 8, .width = 8, .scale_height = 1.7, .scale_width = 1.7})},
              {"nearest", 2, {1, 5, 4, 3}, resized({.height = 9, .width = 7, .mode = kNearest})},
              {"nearest_doubled",
               2,
               {1, 4, 4, 3},
               resized({.height = 8,
                        .width = 6,
                        .mode = kNearest,
                        .coordinates = ResizeCoordinates::asymmetric,
                        .scale_height = 2,
                        .scale_width = 2})},
              {"nearest_smaller",
               2,
               {1, 3, 9, 8},
               resized({.height = 4, .width = 3, .mode = kNearest, .coordinates = ResizeCoordinates::asymmetric})},
          },
      .large =
          {
              {"large_bilinear", 2, {1, 19, 21, 23}, resized({.height = 41, .width = 50})},
              {"large_nearest", 2, {1, 19, 21, 23}, resized({.height = 42, .width = 46, .mode = kNearest})},
          },
      .grow = [](GrowingNetwork& net, Value x) {
        if (net.shape(x).rank() != 4) return net.produce(net.builder().relu(net.consume(x)));
        const ResizeMode mode = net.chance(50) ? ResizeMode::nearest : ResizeMode::bilinear;
        const Shape s = net.shape(x);
        net.produce(net.builder().resize(
            net.consume(x),
            {.height = net.pick(1, s.height() + 3), .width = net.pick(1, s.width() + 3), .mode = mode}));
      }};
}

inline OperatorRecord pad_record() {
  const auto padded = [](PadOptions options) {
    return [options](Builder& net, Value x) { return net.pad(net.tanh(x), options); };
  };
  return {.kind = LayerKind::pad,
          .cases =
              {
                  {"pad", 2, {1, 3, 4, 5}, padded({.before = {0, 1, 2}, .after = {0, 2, 0}})},
                  {"pad_with_value", 2, {1, 3, 4, 5}, padded({.before = {1, 0, 1}, .after = {2, 1, 0}, .value = 0.5})},
                  {"pad_cut", 2, {1, 5, 6, 7}, padded({.before = {-1, -2, 1}, .after = {-2, 1, -3}})},
                  {"pad_reflect",
                   2,
                   {1, 3, 4, 5},
                   padded({.before = {0, 2, 3}, .after = {0, 3, 1}, .mode = PadMode::reflect})},
                  {"pad_replicate",
                   2,
                   {1, 3, 4, 5},
                   padded({.before = {0, 2, 1}, .after = {0, 0, 6}, .mode = PadMode::replicate})},
                  {"pad_rank_three", 2, {1, 3, 5}, padded({.before = {1, 2}, .after = {0, 1}})},
                  {"pad_vector", 5, {1, 5}, padded({.before = {2}, .after = {1}})},
              },
          .large =
              {
                  {"large_pad", 3, kLargeSample, padded({.before = {0, 1, 2}, .after = {0, 2, 1}})},
              },
          .grow = [](GrowingNetwork& net, Value x) {
            const std::size_t axes = net.shape(x).rank() - 1;
            if (axes != 3) return net.produce(net.builder().relu(net.consume(x)));
            PadOptions options{.before = {0, net.pick(0, 2), net.pick(0, 2)}, .after = {net.pick(0, 1), 1, 0}};
            net.produce(net.builder().pad(net.consume(x), options));
          }};
}

inline OperatorRecord channel_shuffle_record() {
  const auto shuffled = [](std::int64_t groups) {
    return [=](Builder& net, Value x) { return net.channel_shuffle(net.tanh(x), groups); };
  };
  return {.kind = LayerKind::channel_shuffle,
          .cases =
              {
                  {"shuffle", 2, {1, 6, 4, 5}, shuffled(2)},
                  {"shuffle_three", 2, {1, 12, 3, 5}, shuffled(3)},
                  {"shuffle_one", 1, {1, 4, 3, 3}, shuffled(1)},
                  {"shuffle_rank_three", 2, {1, 6, 5}, shuffled(3)},
              },
          .large =
              {
                  {"large_shuffle", 3, {1, 24, 41, 43}, shuffled(4)},
              },
          .grow = [](GrowingNetwork& net, Value x) {
            const std::int64_t groups = net.shape(x).channels() % 2 == 0 ? 2 : 1;
            net.produce(net.builder().channel_shuffle(net.consume(x), groups));
          }};
}

inline OperatorRecord transpose_record() {
  const auto transposed = [](std::vector<std::int64_t> axes) {
    return [axes](Builder& net, Value x) { return net.transpose(net.tanh(x), axes); };
  };
  return {.kind = LayerKind::transpose,
          .cases =
              {
                  {"transpose", 2, {1, 3, 4, 5}, transposed({0, 2, 3, 1})},
                  {"transpose_back", 2, {1, 3, 4, 5}, transposed({0, 3, 1, 2})},
                  {"transpose_rows", 2, {1, 3, 4, 5}, transposed({0, 1, 3, 2})},
                  {"transpose_rank_three", 3, {1, 5, 6}, transposed({0, 2, 1})},
                  {"transpose_rank_five", 2, {1, 2, 3, 4, 5}, transposed({0, 2, 1, 4, 3})},
              },
          .large =
              {
                  {"large_transpose", 3, kLargeSample, transposed({0, 2, 3, 1})},
              },
          .grow = [](GrowingNetwork& net, Value x) {
            if (net.shape(x).rank() != 4) return net.produce(net.builder().relu(net.consume(x)));
            net.produce(net.builder().transpose(net.consume(x), {0, 1, 3, 2}));
          }};
}

inline OperatorRecord reshape_record() {
  const auto reshaped = [](Shape sample) {
    return [sample](Builder& net, Value x) { return net.reshape(net.tanh(x), sample); };
  };
  return {.kind = LayerKind::reshape,
          .cases =
              {
                  {"reshape", 2, {1, 6, 4, 5}, reshaped({1, 2, 3, 4, 5})},
                  {"reshape_to_image", 5, {1, 24}, reshaped({1, 4, 3, 2})},
                  {"reshape_mixed", 3, {1, 4, 3, 5}, reshaped({1, 5, 12})},
              },
          .large =
              {
                  {"large_reshape", 3, kLargeSample, reshaped({1, 41, 19, 43})},
              },
          .grow = [](GrowingNetwork& net, Value x) {
            const Shape s = net.shape(x);
            if (s.rank() != 4) return net.produce(net.builder().relu(net.consume(x)));
            net.produce(net.builder().reshape(net.consume(x), {1, s.width(), s.channels(), s.height()}));
          }};
}

inline OperatorRecord drop_path_record() {
  return {.kind = LayerKind::drop_path,
          .cases =
              {
                  {"drop_path",
                   5,
                   {1, 3, 5, 7},
                   [](Builder& net, Value x) {
                     return net.add({x, net.drop_path(net.tanh(x), {.rate = 0.4})});
                   }},
                  {"drop_path_channels",
                   3,
                   {1, 7, 4, 3},
                   [](Builder& net, Value x) { return net.drop_path(x, {.rate = 0.5, .per_channel = true}); }},
              },
          .large =
              {
                  {"large_drop_path", 4, kLargeSample,
                   [](Builder& net, Value x) { return net.drop_path(x, {.rate = 0.3}); }},
              },
          .grow = [](GrowingNetwork& net, Value x) {
            net.produce(net.builder().drop_path(net.consume(x), {.rate = 0.3, .per_channel = net.chance(30)}));
          }};
}

}  // namespace tide::test
