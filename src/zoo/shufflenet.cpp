// ShuffleNet-v2 (N. Ma et al., 2018) of width 1, as in torchvision.
#include <array>

#include "zoo/families.h"
#include "zoo/mobile_blocks.h"

namespace tide {
namespace {

Value depthwise(Builder& net, Value x, std::int64_t stride, const std::string& name, int convolution) {
  const std::int64_t channels = net.shape(x).channels();
  return normalized(net, x, {.channels = channels, .kernel = 3, .stride = stride, .groups = channels},
                    fmt::format("{}.{}", name, convolution), fmt::format("{}.{}", name, convolution + 1));
}

Value pointwise(Builder& net, Value x, std::int64_t channels, const std::string& name, int convolution) {
  return normalized(net, x, {.channels = channels, .relu = true}, fmt::format("{}.{}", name, convolution),
                    fmt::format("{}.{}", name, convolution + 1));
}

// Half of the channels pass; where the stride is 2, both halves are made of all.
Value shuffle_unit(Builder& net, Value x, std::int64_t channels, std::int64_t stride, const std::string& name) {
  const std::int64_t half = channels / 2;
  Value first = x, second = x;
  if (stride == 1) {
    const std::vector<Value> halves = net.split(x, {half, half}, name + ".chunk");
    first = halves[0], second = halves[1];
  } else {
    first = pointwise(net, depthwise(net, x, stride, name + ".branch1", 0), half, name + ".branch1", 2);
  }
  second = pointwise(net, second, half, name + ".branch2", 0);
  second = pointwise(net, depthwise(net, second, stride, name + ".branch2", 3), half, name + ".branch2", 5);
  return net.channel_shuffle(net.concat({first, second}, name + ".cat"), 2, name + ".shuffle");
}

}  // namespace

Network make_shufflenet_v2(const ZooRequest& request) {
  constexpr std::array<std::int64_t, 3> kBlocks = {4, 8, 4}, kChannels = {116, 232, 464};
  Builder net(request.name);
  Value x = net.input(request.sample, "data");
  x = normalized(net, x, {.channels = 24, .kernel = 3, .stride = 2, .relu = true}, "conv1");
  x = net.max_pool(x, {.window = Window::square(3, 2, 1)}, "maxpool");
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage)
    for (std::int64_t i = 0; i < kBlocks[stage]; ++i)
      x = shuffle_unit(net, x, kChannels[stage], i == 0 ? 2 : 1, fmt::format("stage{}.{}", stage + 2, i));
  x = normalized(net, x, {.channels = 1024, .relu = true}, "conv5");
  x = net.global_average_pool(x, "avgpool");
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = request.classes}, "fc"), {}, "softmax");
  return std::move(net).build();
}

}  // namespace tide
