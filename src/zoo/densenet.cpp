// DenseNet-121 (G. Huang et al., 2017). Each layer's features are appended to what came
// before by a concat of two, so that single features need not outlive it.
#include <array>

#include "zoo/blocks.h"
#include "zoo/families.h"

namespace tide {
namespace {

constexpr std::int64_t kGrowth = 32;

Value dense_layer(Builder& net, Value x, const std::string& name) {
  Value features = norm_relu_convolution(net, x, 4 * kGrowth, Window::square(1), name + ".conv1");
  features = norm_relu_convolution(net, features, kGrowth, Window::square(3, 1, 1), name + ".conv2");
  return net.concat({x, features}, name + ".concat");
}

Value transition(Builder& net, Value x, const std::string& name) {
  x = norm_relu_convolution(net, x, net.shape(x).channels() / 2, Window::square(1), name);
  return net.average_pool(x, {.window = Window::square(2, 2)}, name + ".pool");
}

}  // namespace

Network make_densenet121(const ZooRequest& request) {
  constexpr std::array<int, 4> kBlocks = {6, 12, 24, 16};
  Builder net(request.name);
  Value x = net.input(request.sample, "data");
  x = convolution_norm_relu(net, x, 2 * kGrowth, Window::square(7, 2, 3), "conv0");
  x = net.max_pool(x, {.window = Window::square(3, 2, 1)}, "pool0");
  for (std::size_t block = 0; block < kBlocks.size(); ++block) {
    for (int i = 0; i < kBlocks[block]; ++i) x = dense_layer(net, x, fmt::format("block{}.layer{}", block + 1, i + 1));
    if (block + 1 < kBlocks.size()) x = transition(net, x, fmt::format("transition{}", block + 1));
  }
  x = net.relu(net.batch_norm(x, {}, "last.norm"), "last.relu");
  classify(net, x, request.classes);
  return std::move(net).build();
}

}  // namespace tide
