// EfficientNet B0 to B4 (M. Tan and Q. Le, 2019), as in torchvision: one table, made wider and deeper.
#include <cmath>

#include "zoo/families.h"
#include "zoo/mobile_blocks.h"

namespace tide {
namespace {

struct Stage {
  std::int64_t expansion, kernel, stride, channels, blocks;
};
constexpr Stage kStages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                             {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
constexpr double kMostDropped = 0.2;  // of the paths of the last block

const ActivationOptions kSilu = ActivationOptions::of(ActivationFunction::silu);

struct Block {
  Stage stage;
  double dropped = 0;  // how often its path is
};

Value mobile_block(Builder& net, Value x, const Block& block, const std::string& name) {
  const Stage& stage = block.stage;
  const std::int64_t in = net.shape(x).channels(), hidden = in * stage.expansion;
  int next = 0;
  const auto part = [&] { return fmt::format("{}.block.{}", name, next++); };
  Value y = x;
  if (stage.expansion > 1) y = normalized(net, y, {.channels = hidden, .function = kSilu}, part());
  const NormalizedOptions depthwise{
      .channels = hidden, .kernel = stage.kernel, .stride = stage.stride, .groups = hidden, .function = kSilu};
  y = normalized(net, y, depthwise, part());
  y = gated(net, y, {.squeezed = std::max<std::int64_t>(1, in / 4), .function = kSilu}, part());
  y = normalized(net, y, {.channels = stage.channels}, part());
  if (stage.stride != 1 || in != stage.channels) return y;
  if (block.dropped > 0) y = net.drop_path(y, {.rate = block.dropped}, name + ".stochastic_depth");
  return net.add({y, x}, name + ".add");
}

}  // namespace

// `numbers` are the factors of width and depth and the dropout's rate, in hundredths.
Network make_efficientnet(const ZooRequest& request) {
  const auto factor = [&](std::size_t i) { return static_cast<double>(request.numbers.at(i)) / 100; };
  const double width = factor(0), depth = factor(1), dropout = factor(2);
  const auto channels = [&](std::int64_t base) { return made_divisible(static_cast<double>(base) * width); };
  const auto blocks = [&](const Stage& stage) {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(stage.blocks) * depth - 1e-9));
  };
  std::int64_t total = 0, made = 0;
  for (const Stage& stage : kStages) total += blocks(stage);

  Builder net(request.name);
  Value x = net.input(request.sample, "data");
  x = normalized(net, x, {.channels = channels(32), .kernel = 3, .stride = 2, .function = kSilu}, "features.0");
  int next = 1;
  for (const Stage& base : kStages) {
    Stage stage = base;
    stage.channels = channels(base.channels);
    for (std::int64_t i = 0; i < blocks(base); ++i, ++made, stage.stride = 1) {
      const double dropped = kMostDropped * static_cast<double>(made) / static_cast<double>(total);
      x = mobile_block(net, x, {stage, dropped}, fmt::format("features.{}.{}", next, i));
    }
    ++next;
  }
  x = normalized(net, x, {.channels = 4 * net.shape(x).channels(), .function = kSilu},
                 fmt::format("features.{}", next));
  x = net.dropout(net.global_average_pool(x, "avgpool"), {.rate = dropout}, "classifier.0");
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = request.classes}, "classifier.1"), {}, "softmax");
  return std::move(net).build();
}

}  // namespace tide
