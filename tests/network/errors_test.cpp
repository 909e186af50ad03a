// Every rule of a network, broken once: the message names the layer.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "network/builder.h"

namespace tide {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

struct Case {
  const char* what;
  std::function<void(Builder&, Value)> make;  // adds the layer "bad" to a network with an 8x16x16 value
  const char* message;                        // a part of it
};

Window window(std::int64_t kernel, std::int64_t stride, std::int64_t pad, std::int64_t dilation = 1) {
  Window made = Window::square(kernel, stride, pad);
  made.dilation_height = made.dilation_width = dilation;
  return made;
}

void convolution(Builder& net, Value x, const ConvolutionOptions& options) { net.convolution(x, options, "bad"); }
void transposed(Builder& net, Value x, const ConvolutionOptions& options) {
  net.transposed_convolution(x, options, "bad");
}
void max_pool(Builder& net, Value x, const Window& w) { net.max_pool(x, {.window = w}, "bad"); }

std::vector<Case> cases() {
  return {
      {"no channels", [](auto& n, Value x) { convolution(n, x, {}); }, "0 output channels"},
      {"kernel 0", [](auto& n, Value x) { convolution(n, x, {.channels = 1, .window = window(0, 1, 0)}); }, "kernel"},
      {"stride 0", [](auto& n, Value x) { convolution(n, x, {.channels = 1, .window = window(1, 0, 0)}); }, "stride"},
      {"negative pad", [](auto& n, Value x) { convolution(n, x, {.channels = 1, .window = window(1, 1, -1)}); }, "pad"},
      {"dilation 0", [](auto& n, Value x) { convolution(n, x, {.channels = 1, .window = window(1, 1, 0, 0)}); },
       "dilation"},
      {"groups 0", [](auto& n, Value x) { convolution(n, x, {.channels = 1, .groups = 0}); }, "0 groups"},
      {"groups and input", [](auto& n, Value x) { convolution(n, x, {.channels = 3, .groups = 3}); }, "3 groups"},
      {"groups and output", [](auto& n, Value x) { convolution(n, x, {.channels = 3, .groups = 2}); }, "2 groups"},
      {"window too large", [](auto& n, Value x) { convolution(n, x, {.channels = 1, .window = window(17, 1, 0)}); },
       "does not fit"},
      {"dilated too large", [](auto& n, Value x) { convolution(n, x, {.channels = 1, .window = window(3, 1, 0, 8)}); },
       "does not fit"},
      {"huge kernel",
       [](auto& n, Value x) { convolution(n, x, {.channels = 1, .window = window(kHuge, 1, 0, kHuge)}); }, "overflow"},
      {"huge pad", [](auto& n, Value x) { convolution(n, x, {.channels = 1, .window = window(3, 1, kHuge)}); },
       "overflow"},
      {"huge channels", [](auto& n, Value x) { convolution(n, x, {.channels = kHuge}); }, "overflow"},
      {"huge weight",
       [](auto& n, Value x) {
         convolution(n, x, {.channels = std::int64_t{1} << 40, .window = window(1 << 12, 1 << 12, 1 << 12)});
       },
       "overflow"},
      {"transposed to nothing", [](auto& n, Value x) { transposed(n, x, {.channels = 1, .window = window(1, 1, 8)}); },
       "output height of 0"},
      {"transposed huge stride",
       [](auto& n, Value x) { transposed(n, x, {.channels = 1, .window = window(1, kHuge, 0)}); }, "overflow"},
      {"transposed groups", [](auto& n, Value x) { transposed(n, x, {.channels = 3, .groups = 2}); }, "2 groups"},
      {"pool pad", [](auto& n, Value x) { max_pool(n, x, window(2, 2, 2)); }, "smaller than the window"},
      {"pool dilation", [](auto& n, Value x) { max_pool(n, x, window(2, 1, 1, 17)); }, "dilation"},
      {"pool window", [](auto& n, Value x) { max_pool(n, x, window(17, 1, 0)); }, "256 positions"},
      {"average pool window", [](auto& n, Value x) { n.average_pool(x, {.window = window(17, 1, 0)}, "bad"); },
       "does not fit"},
      {"fully connected", [](auto& n, Value x) { n.fully_connected(x, {}, "bad"); }, "0 output channels"},
      {"dropout 1", [](auto& n, Value x) { n.dropout(x, {.rate = 1}, "bad"); }, "rate"},
      {"dropout -1", [](auto& n, Value x) { n.dropout(x, {.rate = -0.1}, "bad"); }, "rate"},
      {"dropout nan", [](auto& n, Value x) { n.dropout(x, {.rate = std::nan("")}, "bad"); }, "rate"},
      {"lrn even", [](auto& n, Value x) { n.lrn(x, {.size = 4}, "bad"); }, "odd"},
      {"lrn negative", [](auto& n, Value x) { n.lrn(x, {.size = -1}, "bad"); }, "odd"},
      {"lrn k", [](auto& n, Value x) { n.lrn(x, {.k = 0}, "bad"); }, "k is 0"},
      {"lrn alpha", [](auto& n, Value x) { n.lrn(x, {.alpha = -1}, "bad"); }, "alpha"},
      {"lrn beta", [](auto& n, Value x) { n.lrn(x, {.beta = HUGE_VAL}, "bad"); }, "beta"},
      {"epsilon", [](auto& n, Value x) { n.batch_norm(x, {.epsilon = 0}, "bad"); }, "epsilon"},
      {"momentum", [](auto& n, Value x) { n.batch_norm(x, {.momentum = 2}, "bad"); }, "momentum"},
      {"smoothing", [](auto& n, Value x) { n.softmax_cross_entropy(x, {.label_smoothing = 1}, "bad"); }, "smoothing"},
      {"loss weight", [](auto& n, Value x) { n.softmax_cross_entropy(x, {.weight = 0}, "bad"); }, "weight"},
      {"label offset", [](auto& n, Value x) { n.softmax_cross_entropy(x, {.label_offset = -1}, "bad"); }, "offset"},
      {"softmax of a loss", [](auto& n, Value x) { n.softmax_cross_entropy(n.softmax_cross_entropy(x), {}, "bad"); },
       "is the loss"},
      {"split sum",
       [](auto& n, Value x) {
         n.split(x, {3, 4}, "bad");
       },
       "7 channels together"},
      {"split of nothing", [](auto& n, Value x) { n.split(x, {}, "bad"); }, "no outputs"},
      {"split into 0",
       [](auto& n, Value x) {
         n.split(x, {8, 0}, "bad");
       },
       "0 channels"},
      {"split overflow",
       [](auto& n, Value x) {
         n.split(x, {kHuge, kHuge}, "bad");
       },
       "overflow"},
      {"add shapes",
       [](auto& n, Value x) {
         n.add({x, n.global_average_pool(x)}, "bad");
       },
       "input 2 is 8x1x1"},
      {"convolution of a volume",
       [](auto& n, Value) {
         n.convolution(n.input({1, 2, 3, 4, 5}), {.channels = 1}, "bad");
       },
       "takes channels x"},
      {"pool of tokens",
       [](auto& n, Value) {
         n.max_pool(n.input({1, 2, 3}), {}, "bad");
       },
       "takes channels x"},
      {"a sample without extents", [](auto& n, Value) { n.input({1}, "bad"); }, "at least one extent"},
      {"add ranks",
       [](auto& n, Value) {
         n.add({n.input({1, 2, 3}), n.input({1, 2, 3, 1})}, "bad");
       },
       "input 2 is 2x3x1"},
      {"add one", [](auto& n, Value x) { n.add({x}, "bad"); }, "two or more"},
      {"multiply shapes", [](auto& n, Value x) { n.multiply(n.global_average_pool(x), x, "bad"); }, "input 2"},
      {"concat",
       [](auto& n, Value x) {
         n.concat({x, n.global_average_pool(x)}, "bad");
       },
       "1x1"},
      {"concat one", [](auto& n, Value x) { n.concat({x}, "bad"); }, "two or more"},
      {"input with inputs", [](auto& n, Value x) { n.layer(LayerKind::input, {x}, InputOptions{{}}, "bad"); }, "none"},
      {"input of 0",
       [](auto& n, Value) {
         n.input({1, 3, 0, 5}, "bad");
       },
       "3x0x5"},
      {"input batch",
       [](auto& n, Value) {
         n.input({2, 3, 5, 5}, "bad");
       },
       "batch 2"},
      {"input overflow",
       [](auto& n, Value) {
         n.input({1, kHuge, 2, 2}, "bad");
       },
       "overflow"},
      {"options of another kind", [](auto& n, Value x) { n.layer(LayerKind::relu, {x}, DropoutOptions{}, "bad"); },
       "another kind"},
      {"two inputs of relu",
       [](auto& n, Value x) {
         n.layer(LayerKind::relu, {x, x}, NoOptions{}, "bad");
       },
       "give one"},
      {"fork of 0", [](auto& n, Value x) { n.layer(LayerKind::fork, {x}, ForkOptions{}, "bad"); }, "0 branches"},
      {"no such value", [](auto& n, Value) { n.relu(Value{}, "bad"); }, "no value"},
      {"no such layer", [](auto& n, Value) { n.relu(Value{LayerId(99)}, "bad"); }, "no value"},
      {"no such output",
       [](auto& n, Value x) {
         n.relu(Value{x.layer, 1}, "bad");
       },
       "no value"},
      {"share kinds",
       [](auto& n, Value x) {
         n.sharing(n.convolution(x, {.channels = 1})).fully_connected(x, {.channels = 1}, "bad");
       },
       "one kind"},
      {"share nothing", [](auto& n, Value x) { n.sharing(x).relu(x, "bad"); }, "one kind"},
      {"share shapes",
       [](auto& n, Value x) { n.sharing(n.convolution(x, {.channels = 2})).convolution(x, {.channels = 3}, "bad"); },
       "3x8x1x1"},
      {"share a missing bias",
       [](auto& n, Value x) {
         n.sharing(n.convolution(x, {.channels = 2, .bias = false})).convolution(x, {.channels = 2}, "bad");
       },
       "bias"},
      {"share a bias too many",
       [](auto& n, Value x) {
         n.sharing(n.convolution(x, {.channels = 2})).convolution(x, {.channels = 2, .bias = false}, "bad");
       },
       "bias"},
      {"mirror", [](auto& n, Value x) { n.mirror(n.relu(x, "bad"), -1); }, "mirror"},
      {"same name", [](auto& n, Value x) { n.relu(n.relu(x, "bad"), "bad"); }, "two layers"},
  };
}

TEST(NetworkErrors, NameTheLayer) {
  for (const Case& test : cases()) {
    Builder net("test");
    const Value x = net.input({1, 8, 16, 16});
    try {
      test.make(net, x);
      ADD_FAILURE() << test.what << ": no error";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("'bad'"), std::string::npos) << test.what << ": " << text;
      EXPECT_NE(text.find(test.message), std::string::npos) << test.what << ": " << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << test.what << ": " << text;
    }
  }
}

std::string build_error(const std::function<void(Builder&)>& make) {
  Builder net("test");
  try {
    make(net);
    static_cast<void>(std::move(net).build());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NetworkErrors, OfTheWhole) {
  const Shape sample{1, 8, 4, 4};
  EXPECT_NE(build_error([](Builder&) {}).find("no input layer"), std::string::npos);
  EXPECT_NE(build_error([&](Builder& n) {
              n.add({n.input(sample, "a"), n.input(sample, "b")});
            }).find("'a' and 'b'"),
            std::string::npos);
  // Something beside the loss is left over.
  EXPECT_NE(build_error([&](Builder& n) {
              const Value x = n.input(sample);
              n.softmax_cross_entropy(x);
              n.relu(x, "loose");
            }).find("'loose'"),
            std::string::npos);
  EXPECT_NE(build_error([&](Builder& n) {
              n.softmax_cross_entropy(n.split(n.input(sample), {4, 4}, "halves")[0]);
            }).find("output 1 of layer 'halves'"),
            std::string::npos);
  // Without a loss there is one result.
  EXPECT_EQ(build_error([&](Builder& n) { n.relu(n.input(sample)); }), "");
  EXPECT_NE(build_error([&](Builder& n) {
              const Value x = n.input(sample);
              n.relu(x, "a");
              n.relu(x, "b");
            }).find("'a' and 'b'"),
            std::string::npos);
  EXPECT_NE(build_error([&](Builder& n) {
              const Value x = n.input(sample);
              n.sharing(n.convolution(x, {.channels = 1}, "first"));
            }).find("'first'"),
            std::string::npos);
  EXPECT_NE(build_error([&](Builder& n) { n.input(sample, "two\nlines"); }).find("control character"),
            std::string::npos);
}

TEST(NetworkErrors, LossesNeedTheirOwnLabels) {
  const auto two_losses = [](std::int64_t first, std::int64_t second) {
    return build_error([&](Builder& n) {
      const Value x = n.input({1, 8, 2, 3});
      n.softmax_cross_entropy(x, {.label_offset = first}, "one");
      n.softmax_cross_entropy(x, {.label_offset = second}, "two");
    });
  };
  EXPECT_EQ(two_losses(0, 6), "");
  EXPECT_EQ(two_losses(10, 0), "");
  EXPECT_NE(two_losses(0, 5).find("'one' and 'two'"), std::string::npos);
  EXPECT_NE(two_losses(3, 0).find("'two' and 'one'"), std::string::npos);
  EXPECT_NE(two_losses(0, kHuge).find("overflow"), std::string::npos);
}

}  // namespace
}  // namespace tide
