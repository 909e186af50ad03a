// DeepLab-v3 (L. Chen et al., 2017) on ResNet-50 with dilated last stages, without the auxiliary classifier, as in
// torchvision. Pixels that have no class do not count.
#include <array>

#include "zoo/families.h"
#include "zoo/mobile_blocks.h"

namespace tide {
namespace {

Value bottleneck(Builder& net, Value x, std::int64_t width, std::int64_t stride, std::int64_t dilation,
                 const std::string& name) {
  const std::int64_t channels = 4 * width;
  Value y = normalized(net, x, {.channels = width, .relu = true}, name + ".conv1", name + ".bn1");
  y = normalized(net, y, {.channels = width, .kernel = 3, .stride = stride, .dilation = dilation, .relu = true},
                 name + ".conv2", name + ".bn2");
  y = normalized(net, y, {.channels = channels}, name + ".conv3", name + ".bn3");
  const bool project = stride != 1 || net.shape(x).channels() != channels;
  const Value shortcut =
      project ? normalized(net, x, {.channels = channels, .stride = stride}, name + ".downsample") : x;
  return net.relu(net.add({y, shortcut}, name + ".add"), name + ".relu");
}

// Its last two stages keep their extents: their convolutions are dilated instead, from the second block on.
Value dilated_resnet50(Builder& net, Value x) {
  struct Stage {
    std::int64_t blocks, stride, first_dilation, dilation;
  };
  constexpr std::array<Stage, 4> kStages = {{{3, 1, 1, 1}, {4, 2, 1, 1}, {6, 1, 1, 2}, {3, 1, 2, 4}}};
  x = normalized(net, x, {.channels = 64, .kernel = 7, .stride = 2, .relu = true}, "backbone.conv1", "backbone.bn1");
  x = net.max_pool(x, {.window = Window::square(3, 2, 1)}, "backbone.maxpool");
  std::int64_t width = 64;
  for (std::size_t s = 0; s < kStages.size(); ++s, width *= 2) {
    const Stage& stage = kStages[s];
    for (std::int64_t i = 0; i < stage.blocks; ++i)
      x = bottleneck(net, x, width, i == 0 ? stage.stride : 1, i == 0 ? stage.first_dilation : stage.dilation,
                     fmt::format("backbone.layer{}.{}", s + 1, i));
  }
  return x;
}

// Atrous spatial pyramid pooling: dilated convolutions beside each other, and the mean of the image.
Value pyramid(Builder& net, Value x) {
  const std::string name = "classifier.0.convs.";
  const Shape shape = net.shape(x);
  const auto fill = [&](int index, std::int64_t kernel, std::int64_t dilation) {
    return normalized(net, x, {.channels = 256, .kernel = kernel, .dilation = dilation, .relu = true},
                      name + std::to_string(index));
  };
  std::vector<Value> branches{fill(0, 1, 1), fill(1, 3, 12), fill(2, 3, 24), fill(3, 3, 36)};
  Value mean = net.global_average_pool(x, name + "4.0");
  mean = normalized(net, mean, {.channels = 256, .relu = true}, name + "4.1", name + "4.2");
  branches.push_back(net.resize(mean, {.height = shape.height(), .width = shape.width()}, name + "4.resize"));
  x = net.concat(std::move(branches), "classifier.0.cat");
  x = normalized(net, x, {.channels = 256, .relu = true}, "classifier.0.project");
  return net.dropout(x, {.rate = 0.5}, "classifier.0.project.3");
}

}  // namespace

Network make_deeplab_v3(const ZooRequest& request) {
  Builder net(request.name);
  Value x = pyramid(net, dilated_resnet50(net, net.input(request.sample, "data")));
  x = normalized(net, x, {.channels = 256, .kernel = 3, .relu = true}, "classifier.1", "classifier.2");
  x = net.convolution(x, {.channels = request.classes}, "classifier.4");
  x = net.resize(x, {.height = request.sample.height(), .width = request.sample.width()}, "resize");
  net.softmax_cross_entropy(x, {.counted = true}, "softmax");
  return std::move(net).build();
}

}  // namespace tide
