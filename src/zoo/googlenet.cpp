// GoogLeNet (C. Szegedy et al., 2015) with batch norms and without auxiliary classifiers, as in torchvision.
#include <array>

#include "zoo/families.h"
#include "zoo/mobile_blocks.h"

namespace tide {
namespace {

Value unit(Builder& net, Value x, std::int64_t channels, std::int64_t kernel, const std::string& name,
           std::int64_t stride = 1) {
  return normalized(
      net, x, {.channels = channels, .kernel = kernel, .stride = stride, .relu = true, .norm = {.epsilon = 0.001}},
      name + ".conv", name + ".bn");
}

// Channels of the 1x1, of the two 3x3 (reduced, made; the second was a 5x5 in the paper) and behind the pool.
using Widths = std::array<std::int64_t, 6>;

Value inception(Builder& net, Value x, const Widths& widths, const std::string& name) {
  const Value one = unit(net, x, widths[0], 1, name + ".branch1");
  const Value two = unit(net, unit(net, x, widths[1], 1, name + ".branch2.0"), widths[2], 3, name + ".branch2.1");
  const Value three = unit(net, unit(net, x, widths[3], 1, name + ".branch3.0"), widths[4], 3, name + ".branch3.1");
  const PoolOptions pool{.window = Window::square(3, 1, 1), .round_up = true};
  const Value four = unit(net, net.max_pool(x, pool, name + ".branch4.0"), widths[5], 1, name + ".branch4.1");
  return net.concat({one, two, three, four}, name + ".cat");
}

}  // namespace

Network make_googlenet(const ZooRequest& request) {
  Builder net(request.name);
  const auto halved = [&](Value x, std::int64_t kernel, const std::string& name) {
    return net.max_pool(x, {.window = Window::square(kernel, 2), .round_up = true}, name);
  };
  Value x = unit(net, net.input(request.sample, "data"), 64, 7, "conv1", 2);
  x = unit(net, halved(x, 3, "maxpool1"), 64, 1, "conv2");
  x = halved(unit(net, x, 192, 3, "conv3"), 3, "maxpool2");
  x = inception(net, x, {64, 96, 128, 16, 32, 32}, "inception3a");
  x = inception(net, x, {128, 128, 192, 32, 96, 64}, "inception3b");
  x = halved(x, 3, "maxpool3");
  x = inception(net, x, {192, 96, 208, 16, 48, 64}, "inception4a");
  x = inception(net, x, {160, 112, 224, 24, 64, 64}, "inception4b");
  x = inception(net, x, {128, 128, 256, 24, 64, 64}, "inception4c");
  x = inception(net, x, {112, 144, 288, 32, 64, 64}, "inception4d");
  x = inception(net, x, {256, 160, 320, 32, 128, 128}, "inception4e");
  x = halved(x, 2, "maxpool4");
  x = inception(net, x, {256, 160, 320, 32, 128, 128}, "inception5a");
  x = inception(net, x, {384, 192, 384, 48, 128, 128}, "inception5b");
  x = net.dropout(net.global_average_pool(x, "avgpool"), {.rate = 0.2}, "dropout");
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = request.classes}, "fc"), {}, "softmax");
  return std::move(net).build();
}

}  // namespace tide
