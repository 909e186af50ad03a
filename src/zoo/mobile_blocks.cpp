#include "zoo/mobile_blocks.h"

#include <algorithm>
#include <cmath>

namespace tide {

std::int64_t made_divisible(double channels, std::int64_t divisor) {
  const auto half = static_cast<double>(divisor) / 2;
  const std::int64_t rounded = std::max(divisor, static_cast<std::int64_t>(channels + half) / divisor * divisor);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + divisor : rounded;
}

Value normalized(Builder& net, Value x, const NormalizedOptions& options, const std::string& convolution,
                 const std::string& norm) {
  const std::int64_t pad = (options.kernel - 1) / 2 * options.dilation;
  Window window = Window::square(options.kernel, options.stride, pad);
  window.dilation_height = window.dilation_width = options.dilation;
  x = net.convolution(x, {.channels = options.channels, .window = window, .groups = options.groups, .bias = false},
                      convolution);
  x = net.batch_norm(x, options.norm, norm);
  if (options.relu) return net.relu(x, norm + ".relu");
  return options.function ? net.activation(x, *options.function, norm + ".function") : x;
}

Value normalized(Builder& net, Value x, const NormalizedOptions& options, const std::string& name) {
  return normalized(net, x, options, name + ".0", name + ".1");
}

Value gated(Builder& net, Value x, const GateOptions& options, const std::string& name) {
  const std::int64_t channels = net.shape(x).channels();
  Value gate = net.global_average_pool(x, name + ".avgpool");
  gate = net.convolution(gate, {.channels = options.squeezed}, name + ".fc1");
  gate = options.function ? net.activation(gate, *options.function, name + ".activation")
                          : net.relu(gate, name + ".activation");
  gate = net.convolution(gate, {.channels = channels}, name + ".fc2");
  gate = options.gate ? net.activation(gate, *options.gate, name + ".gate") : net.sigmoid(gate, name + ".gate");
  return net.combine(x, gate, CombineFunction::multiply, name + ".scaled");
}

}  // namespace tide
