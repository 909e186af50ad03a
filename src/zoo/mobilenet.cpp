// MobileNet-v2 (M. Sandler et al., 2018) and MobileNet-v3 (A. Howard et al., 2019), as in torchvision.
#include "zoo/families.h"
#include "zoo/mobile_blocks.h"

namespace tide {
namespace {

const ActivationOptions kRelu6 = ActivationOptions::of(ActivationFunction::clip);
const ActivationOptions kHardSwish = ActivationOptions::of(ActivationFunction::hard_swish);
const ActivationOptions kHardSigmoid = ActivationOptions::of(ActivationFunction::hard_sigmoid);

struct InvertedOptions {
  std::int64_t expansion = 1, channels = 0, stride = 1;
};

Value inverted_residual(Builder& net, Value x, const InvertedOptions& options, const std::string& name) {
  const std::int64_t in = net.shape(x).channels(), hidden = in * options.expansion;
  const std::string part = name + ".conv.";
  int next = 0;
  Value y = x;
  if (options.expansion > 1)
    y = normalized(net, y, {.channels = hidden, .function = kRelu6}, part + std::to_string(next++));
  y = normalized(net, y,
                 {.channels = hidden, .kernel = 3, .stride = options.stride, .groups = hidden, .function = kRelu6},
                 part + std::to_string(next++));
  y = normalized(net, y, {.channels = options.channels}, part + std::to_string(next), part + std::to_string(next + 1));
  return options.stride == 1 && in == options.channels ? net.add({y, x}, name + ".add") : y;
}

// A block of MobileNet-v3. `squeezed` 0: it has no gate.
struct MobileBlock {
  std::int64_t kernel, hidden, channels;
  bool gate, hard_swish;
  std::int64_t stride;
};

constexpr double kEpsilon = 0.001, kMomentum = 0.01;
const BatchNormOptions kNorm{.epsilon = kEpsilon, .momentum = kMomentum};

Value mobile_block(Builder& net, Value x, const MobileBlock& block, const std::string& name) {
  const std::int64_t in = net.shape(x).channels();
  NormalizedOptions options{.norm = kNorm};
  if (block.hard_swish)
    options.function = kHardSwish;
  else
    options.relu = true;
  int next = 0;
  const auto part = [&] { return fmt::format("{}.block.{}", name, next++); };
  Value y = x;
  options.channels = block.hidden;
  if (block.hidden != in) y = normalized(net, y, options, part());
  options.kernel = block.kernel, options.stride = block.stride, options.groups = block.hidden;
  y = normalized(net, y, options, part());
  if (block.gate)
    y = gated(net, y, {.squeezed = made_divisible(static_cast<double>(block.hidden) / 4), .gate = kHardSigmoid},
              part());
  y = normalized(net, y, {.channels = block.channels, .norm = kNorm}, part());
  return block.stride == 1 && in == block.channels ? net.add({y, x}, name + ".add") : y;
}

Network make_mobilenet_v3(const ZooRequest& request, const std::vector<MobileBlock>& blocks, std::int64_t last) {
  Builder net(request.name);
  Value x = net.input(request.sample, "data");
  const NormalizedOptions stem{.channels = 16, .kernel = 3, .stride = 2, .function = kHardSwish, .norm = kNorm};
  x = normalized(net, x, stem, "features.0");
  for (std::size_t i = 0; i < blocks.size(); ++i)
    x = mobile_block(net, x, blocks[i], fmt::format("features.{}", i + 1));
  const NormalizedOptions head{.channels = 6 * net.shape(x).channels(), .function = kHardSwish, .norm = kNorm};
  x = normalized(net, x, head, fmt::format("features.{}", blocks.size() + 1));
  x = net.global_average_pool(x, "avgpool");
  x = net.activation(net.fully_connected(x, {.channels = last}, "classifier.0"), kHardSwish, "classifier.1");
  x = net.dropout(x, {.rate = 0.2}, "classifier.2");
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = request.classes}, "classifier.3"), {}, "softmax");
  return std::move(net).build();
}

}  // namespace

Network make_mobilenet_v2(const ZooRequest& request) {
  struct Stage {
    std::int64_t expansion, channels, blocks, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Builder net(request.name);
  Value x = net.input(request.sample, "data");
  x = normalized(net, x, {.channels = 32, .kernel = 3, .stride = 2, .function = kRelu6}, "features.0");
  int next = 1;
  for (const Stage& stage : kStages)
    for (std::int64_t i = 0; i < stage.blocks; ++i)
      x = inverted_residual(net, x, {stage.expansion, stage.channels, i == 0 ? stage.stride : 1},
                            fmt::format("features.{}", next++));
  x = normalized(net, x, {.channels = 1280, .function = kRelu6}, fmt::format("features.{}", next));
  x = net.dropout(net.global_average_pool(x, "avgpool"), {.rate = 0.2}, "classifier.0");
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = request.classes}, "classifier.1"), {}, "softmax");
  return std::move(net).build();
}

Network make_mobilenet_v3_large(const ZooRequest& request) {
  return make_mobilenet_v3(request,
                           {{3, 16, 16, false, false, 1},
                            {3, 64, 24, false, false, 2},
                            {3, 72, 24, false, false, 1},
                            {5, 72, 40, true, false, 2},
                            {5, 120, 40, true, false, 1},
                            {5, 120, 40, true, false, 1},
                            {3, 240, 80, false, true, 2},
                            {3, 200, 80, false, true, 1},
                            {3, 184, 80, false, true, 1},
                            {3, 184, 80, false, true, 1},
                            {3, 480, 112, true, true, 1},
                            {3, 672, 112, true, true, 1},
                            {5, 672, 160, true, true, 2},
                            {5, 960, 160, true, true, 1},
                            {5, 960, 160, true, true, 1}},
                           1280);
}

Network make_mobilenet_v3_small(const ZooRequest& request) {
  return make_mobilenet_v3(request,
                           {{3, 16, 16, true, false, 2},
                            {3, 72, 24, false, false, 2},
                            {3, 88, 24, false, false, 1},
                            {5, 96, 40, true, true, 2},
                            {5, 240, 40, true, true, 1},
                            {5, 240, 40, true, true, 1},
                            {5, 120, 48, true, true, 1},
                            {5, 144, 48, true, true, 1},
                            {5, 288, 96, true, true, 2},
                            {5, 576, 96, true, true, 1},
                            {5, 576, 96, true, true, 1}},
                           1024);
}

}  // namespace tide
