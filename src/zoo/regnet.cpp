// RegNet (I. Radosavovic et al., 2020), as in torchvision: widths that grow in a line, rounded to stages.
#include <cmath>

#include "zoo/families.h"
#include "zoo/mobile_blocks.h"

namespace tide {
namespace {

struct RegNet {
  std::int64_t depth;
  double first_width, slope, factor;  // w_0, w_a and w_m of the paper
  std::int64_t group_width;
  bool gate;  // RegNet-Y
};

struct Stage {
  std::int64_t width, blocks;
};

// Neighbouring blocks of one width are a stage.
std::vector<Stage> stages_of(const RegNet& net) {
  std::vector<Stage> stages;
  for (std::int64_t i = 0; i < net.depth; ++i) {
    const double wanted = net.first_width + net.slope * static_cast<double>(i);
    const double power = std::nearbyint(std::log(wanted / net.first_width) / std::log(net.factor));
    const double width = std::nearbyint(net.first_width * std::pow(net.factor, power) / 8) * 8;
    const auto rounded = static_cast<std::int64_t>(width);
    if (stages.empty() || stages.back().width != rounded) stages.push_back({rounded, 0});
    ++stages.back().blocks;
  }
  for (Stage& stage : stages) {
    const std::int64_t group = std::min(net.group_width, stage.width);
    stage.width = made_divisible(static_cast<double>(stage.width), group);
  }
  return stages;
}

Value regnet_block(Builder& net, Value x, const RegNet& family, std::int64_t width, std::int64_t stride,
                   const std::string& name) {
  const std::int64_t in = net.shape(x).channels(), group = std::min(family.group_width, width);
  Value y = normalized(net, x, {.channels = width, .relu = true}, name + ".f.a");
  const NormalizedOptions middle{
      .channels = width, .kernel = 3, .stride = stride, .groups = width / group, .relu = true};
  y = normalized(net, y, middle, name + ".f.b");
  if (family.gate)
    y = gated(net, y, {.squeezed = static_cast<std::int64_t>(std::nearbyint(0.25 * static_cast<double>(in)))},
              name + ".f.se");
  y = normalized(net, y, {.channels = width}, name + ".f.c");
  const bool project = stride != 1 || in != width;
  const Value shortcut = project ? normalized(net, x, {.channels = width, .stride = stride}, name + ".proj") : x;
  return net.relu(net.add({y, shortcut}, name + ".add"), name + ".activation");
}

Network make_regnet(const ZooRequest& request, const RegNet& family) {
  Builder net(request.name);
  Value x = net.input(request.sample, "data");
  x = normalized(net, x, {.channels = 32, .kernel = 3, .stride = 2, .relu = true}, "stem");
  int number = 1;
  for (const Stage& stage : stages_of(family)) {
    for (std::int64_t i = 0; i < stage.blocks; ++i)
      x = regnet_block(net, x, family, stage.width, i == 0 ? 2 : 1,
                       fmt::format("trunk_output.block{0}.block{0}-{1}", number, i));
    ++number;
  }
  x = net.global_average_pool(x, "avgpool");
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = request.classes}, "fc"), {}, "softmax");
  return std::move(net).build();
}

}  // namespace

Network make_regnet_y_400mf(const ZooRequest& request) { return make_regnet(request, {16, 48, 27.89, 2.09, 8, true}); }

Network make_regnet_y_800mf(const ZooRequest& request) { return make_regnet(request, {14, 56, 38.84, 2.4, 16, true}); }

Network make_regnet_x_400mf(const ZooRequest& request) {
  return make_regnet(request, {22, 24, 24.48, 2.54, 16, false});
}

Network make_regnet_x_800mf(const ZooRequest& request) {
  return make_regnet(request, {16, 56, 35.73, 2.28, 16, false});
}

}  // namespace tide
