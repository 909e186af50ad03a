// Small networks for small images.
#include "zoo/blocks.h"
#include "zoo/families.h"

namespace tide {

// LeNet as Caffe trains it on MNIST (Y. LeCun et al., 1998, with max pools and ReLU).
Network make_lenet(const ZooRequest& request) {
  Builder net(request.name);
  Value x = net.input(request.sample, "data");
  x = net.convolution(x, {.channels = 20, .window = Window::square(5)}, "conv1");
  x = net.max_pool(x, {.window = Window::square(2, 2)}, "pool1");
  x = net.convolution(x, {.channels = 50, .window = Window::square(5)}, "conv2");
  x = net.max_pool(x, {.window = Window::square(2, 2)}, "pool2");
  x = net.relu(net.fully_connected(x, {.channels = 500}, "fc1"), "relu1");
  x = net.fully_connected(x, {.channels = request.classes}, "fc2");
  net.softmax_cross_entropy(x, {}, "softmax");
  return std::move(net).build();
}

// For the 8x8 digits of the quickstart; reaches 98% within a few epochs.
Network make_digits(const ZooRequest& request) {
  Builder net(request.name);
  const Window window = Window::square(3, 1, 1);
  Value x = net.input(request.sample, "data");
  x = convolution_norm_relu(net, x, 32, window, "conv1");
  x = convolution_norm_relu(net, x, 32, window, "conv2");
  x = net.max_pool(x, {.window = Window::square(2, 2)}, "pool1");
  x = convolution_norm_relu(net, x, 64, window, "conv3");
  x = net.max_pool(x, {.window = Window::square(2, 2)}, "pool2");
  x = net.dropout(x, {.rate = 0.25}, "dropout");
  x = net.fully_connected(x, {.channels = request.classes}, "fc");
  net.softmax_cross_entropy(x, {}, "softmax");
  return std::move(net).build();
}

}  // namespace tide
