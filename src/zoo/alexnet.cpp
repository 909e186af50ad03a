// AlexNet (A. Krizhevsky et al., 2012) as SuperNeurons trains it: 23 layers, no groups.
#include "zoo/families.h"

namespace tide {

Network make_alexnet(const ZooRequest& request) {
  Builder net(request.name);
  const auto convolution = [&net](Value x, int number, std::int64_t channels, const Window& window) {
    x = net.convolution(x, {.channels = channels, .window = window}, fmt::format("conv{}", number));
    return net.relu(x, fmt::format("relu{}", number));
  };
  const PoolOptions pool{.window = Window::square(3, 2)};

  Value x = net.input(request.sample, "data");
  x = convolution(x, 1, 96, Window::square(11, 4));
  x = net.max_pool(net.lrn(x, {}, "lrn1"), pool, "pool1");
  x = convolution(x, 2, 256, Window::square(5, 1, 2));
  x = net.max_pool(net.lrn(x, {}, "lrn2"), pool, "pool2");
  x = convolution(x, 3, 384, Window::square(3, 1, 1));
  x = convolution(x, 4, 384, Window::square(3, 1, 1));
  x = convolution(x, 5, 256, Window::square(3, 1, 1));
  x = net.max_pool(x, pool, "pool5");
  x = net.relu(net.fully_connected(x, {.channels = 4096}, "fc1"), "relu6");
  x = net.dropout(x, {}, "dropout1");
  x = net.relu(net.fully_connected(x, {.channels = 4096}, "fc2"), "relu7");
  x = net.dropout(x, {}, "dropout2");
  x = net.fully_connected(x, {.channels = request.classes}, "fc3");
  net.softmax_cross_entropy(x, {}, "softmax");
  return std::move(net).build();
}

}  // namespace tide
