// Layers with weights.
#pragma once

#include "support/operators/record.h"

namespace tide::test {

inline OperatorRecord convolution_record() {
  const auto layer = [](ConvolutionOptions options) {
    return [options](Builder& net, Value x) { return net.convolution(x, options); };
  };
  return {
      .kind = LayerKind::convolution,
      .cases =
          {
              {"conv_3x3", 2, {1, 3, 7, 6}, layer({.channels = 5, .window = Window::square(3, 1, 1)})},
              {"conv_no_bias",
               3,
               {1, 4, 5, 5},
               layer({.channels = 7, .window = Window::square(3, 1, 1), .bias = false})},
              {"conv_1x1_wide", 1, {1, 16, 5, 5}, layer({.channels = 33})},
              {"conv_1x1_stride", 2, {1, 6, 7, 7}, layer({.channels = 17, .window = Window::square(1, 2, 0)})},
              {"conv_stride", 3, {1, 5, 9, 8}, layer({.channels = 3, .window = window(3, 3, 2, 3, 1, 1, 1, 1)})},
              {"conv_rectangle", 2, {1, 3, 7, 9}, layer({.channels = 4, .window = Window::rectangle(1, 7, 0, 3)})},
              {"conv_asymmetric_padding",
               2,
               {1, 3, 8, 7},
               layer({.channels = 6, .window = window(3, 2, 2, 1, 0, 1, 1, 0)})},
              {"conv_dilated", 2, {1, 4, 9, 9}, layer({.channels = 5, .window = window(3, 3, 1, 1, 2, 1, 2, 1, 2, 1)})},
              {"conv_groups", 2, {1, 6, 6, 5}, layer({.channels = 9, .window = Window::square(3, 1, 1), .groups = 3})},
              {"conv_groups_16",
               1,
               {1, 32, 5, 5},
               layer({.channels = 32, .window = Window::square(3, 1, 1), .groups = 2})},
              {"conv_depthwise",
               2,
               {1, 7, 6, 7},
               layer({.channels = 7, .window = Window::square(3, 2, 1), .groups = 7})},
              {"conv_depthwise_packs",
               2,
               {1, 16, 6, 9},
               layer({.channels = 16, .window = Window::square(3, 1, 1), .groups = 16})},
              {"conv_depthwise_5x5",
               3,
               {1, 8, 7, 9},
               layer({.channels = 8, .window = Window::square(5, 2, 2), .groups = 8, .bias = false})},
              {"conv_depthwise_multiplier",
               2,
               {1, 5, 6, 6},
               layer({.channels = 10, .window = Window::square(3, 1, 1), .groups = 5, .bias = false})},
              {"conv_blocks", 2, {1, 32, 6, 6}, layer({.channels = 48, .window = Window::square(3, 1, 1)})},
              {"conv_7x7", 1, {1, 3, 17, 17}, layer({.channels = 16, .window = Window::square(7, 2, 3)})},
              {"conv_whole_image", 2, {1, 5, 4, 4}, layer({.channels = 6, .window = Window::square(4)})},
              {"conv_shared",
               2,
               {1, 4, 6, 6},
               [](Builder& net, Value x) {
                 const ConvolutionOptions options{.channels = 4, .window = Window::square(3, 1, 1)};
                 const Value first = net.convolution(x, options), second = net.relu(first);
                 return net.sharing(first).convolution(second, options);
               }},
              {"conv_shared_between_sizes",
               2,
               {1, 20, 8, 8},
               [](Builder& net, Value x) {
                 const ConvolutionOptions options{.channels = 20, .window = Window::square(3, 2, 1)};
                 const Value first = net.convolution(x, options);
                 return net.sharing(first).convolution(first, options);
               }},
          },
      .grow = [](GrowingNetwork& net, Value x) {
        const Shape s = net.shape(x);
        ConvolutionOptions options{.channels = net.pick(1, 6), .window = {}, .groups = 1, .bias = net.chance(50)};
        if (net.chance(30)) {
          options.groups = s.channels();
          options.channels = s.channels() * net.pick(1, 2);
        }
        Window& window = options.window;
        window.kernel_height = net.pick(1, 3);
        window.kernel_width = net.pick(1, 3);
        window.pad_top = window.pad_bottom = window.kernel_height / 2;
        window.pad_left = window.pad_right = window.kernel_width / 2;
        window.stride_height = window.stride_width = net.chance(25) ? 2 : 1;
        net.convolution(x, options);
      }};
}

inline OperatorRecord transposed_convolution_record() {
  const auto transposed = [](ConvolutionOptions options) {
    return [options](Builder& net, Value x) { return net.transposed_convolution(x, options); };
  };
  return {
      .kind = LayerKind::transposed_convolution,
      .cases =
          {
              {"transposed", 2, {1, 5, 4, 5}, transposed({.channels = 3, .window = Window::square(4, 2, 1)})},
              {"transposed_no_bias",
               1,
               {1, 3, 5, 5},
               transposed({.channels = 6, .window = window(3, 2, 2, 1, 1, 0, 0, 1), .bias = false})},
              {"transposed_groups",
               2,
               {1, 6, 4, 4},
               transposed({.channels = 4, .window = Window::square(3, 2, 1), .groups = 2})},
              {"transposed_dilated",
               2,
               {1, 3, 4, 4},
               transposed({.channels = 5, .window = window(2, 3, 1, 2, 0, 1, 1, 0, 2, 1)})},
              {"transposed_wide", 1, {1, 32, 4, 4}, transposed({.channels = 16, .window = Window::square(4, 2, 1)})},
          },
      .grow = [](GrowingNetwork& net, Value x) {
        if (net.shape(x).height() > 8 || net.shape(x).width() > 8)
          return net.produce(net.builder().relu(net.consume(x)));
        net.produce(net.builder().transposed_convolution(
            net.consume(x),
            {.channels = net.pick(1, 4), .window = Window::square(2, 2), .groups = 1, .bias = net.chance(50)}));
      }};
}

inline OperatorRecord fully_connected_record() {
  return {.kind = LayerKind::fully_connected,
          .cases =
              {
                  {"fully_connected",
                   3,
                   {1, 5, 3, 2},
                   [](Builder& net, Value x) { return net.fully_connected(x, {.channels = 7}); }},
                  {"fully_connected_no_bias",
                   1,
                   {1, 4, 2, 3},
                   [](Builder& net, Value x) { return net.fully_connected(x, {.channels = 19, .bias = false}); }},
                  {"fully_connected_shared",
                   3,
                   {1, 6, 1, 1},
                   [](Builder& net, Value x) {
                     const Value first = net.fully_connected(x, {.channels = 6}), second = net.tanh(first);
                     return net.sharing(first).fully_connected(second, {.channels = 6});
                   }},
              },
          .grow = [](GrowingNetwork& net, Value x) {
            net.produce(
                net.builder().fully_connected(net.consume(x), {.channels = net.pick(1, 8), .bias = net.chance(70)}));
          }};
}

}  // namespace tide::test
