#include "zoo/blocks.h"

#include <array>

namespace tide {

Value plain_convolution(Builder& net, Value x, std::int64_t channels, const Window& window, const std::string& name) {
  return net.convolution(x, {.channels = channels, .window = window, .bias = false}, name);
}

Value convolution_norm(Builder& net, Value x, std::int64_t channels, const Window& window, const std::string& name,
                       const BatchNormOptions& norm) {
  return net.batch_norm(plain_convolution(net, x, channels, window, name), norm, name + ".norm");
}

Value convolution_norm_relu(Builder& net, Value x, std::int64_t channels, const Window& window, const std::string& name,
                            const BatchNormOptions& norm) {
  return net.relu(convolution_norm(net, x, channels, window, name, norm), name + ".relu");
}

Value norm_relu_convolution(Builder& net, Value x, std::int64_t channels, const Window& window,
                            const std::string& name) {
  const Value active = net.relu(net.batch_norm(x, {}, name + ".norm"), name + ".relu");
  return plain_convolution(net, active, channels, window, name);
}

void classify(Builder& net, Value x, std::int64_t classes, double dropout) {
  x = net.global_average_pool(x, "pool");
  if (dropout > 0) x = net.dropout(x, {.rate = dropout}, "dropout");
  x = net.fully_connected(x, {.channels = classes}, "fc");
  net.softmax_cross_entropy(x, {}, "softmax");
}

Value vgg_stages(Builder& net, Value x, std::span<const std::int64_t, 5> convolutions) {
  constexpr std::array<std::int64_t, 5> kChannels = {64, 128, 256, 512, 512};
  for (std::size_t stage = 0; stage < kChannels.size(); ++stage) {
    for (std::int64_t i = 0; i < convolutions[stage]; ++i) {
      const std::string name = fmt::format("conv{}_{}", stage + 1, i + 1);
      x = net.convolution(x, {.channels = kChannels[stage], .window = Window::square(3, 1, 1)}, name);
      x = net.relu(x, name + ".relu");
    }
    x = net.max_pool(x, {.window = Window::square(2, 2)}, fmt::format("pool{}", stage + 1));
  }
  return x;
}

}  // namespace tide
