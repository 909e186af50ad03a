// SqueezeNet 1.1 (F. Iandola et al., 2016), as in torchvision.
#include "zoo/families.h"

namespace tide {
namespace {

Value convolution_relu(Builder& net, Value x, std::int64_t channels, const Window& window, const std::string& name) {
  return net.relu(net.convolution(x, {.channels = channels, .window = window}, name), name + ".relu");
}

Value fire(Builder& net, Value x, std::int64_t squeezed, std::int64_t expanded, const std::string& name) {
  x = convolution_relu(net, x, squeezed, Window::square(1), name + ".squeeze");
  const Value one = convolution_relu(net, x, expanded, Window::square(1), name + ".expand1x1");
  const Value three = convolution_relu(net, x, expanded, Window::square(3, 1, 1), name + ".expand3x3");
  return net.concat({one, three}, name + ".cat");
}

}  // namespace

Network make_squeezenet(const ZooRequest& request) {
  Builder net(request.name);
  const PoolOptions pool{.window = Window::square(3, 2), .round_up = true};
  Value x = convolution_relu(net, net.input(request.sample, "data"), 64, Window::square(3, 2), "features.0");
  x = net.max_pool(x, pool, "features.2");
  x = fire(net, x, 16, 64, "features.3");
  x = fire(net, x, 16, 64, "features.4");
  x = net.max_pool(x, pool, "features.5");
  x = fire(net, x, 32, 128, "features.6");
  x = fire(net, x, 32, 128, "features.7");
  x = net.max_pool(x, pool, "features.8");
  x = fire(net, x, 48, 192, "features.9");
  x = fire(net, x, 48, 192, "features.10");
  x = fire(net, x, 64, 256, "features.11");
  x = fire(net, x, 64, 256, "features.12");
  x = net.dropout(x, {.rate = 0.5}, "classifier.0");
  x = convolution_relu(net, x, request.classes, Window::square(1), "classifier.1");
  net.softmax_cross_entropy(net.global_average_pool(x, "classifier.3"), {}, "softmax");
  return std::move(net).build();
}

}  // namespace tide
