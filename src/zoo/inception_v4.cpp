// Inception-v4 (C. Szegedy et al., 2017).
#include "zoo/blocks.h"
#include "zoo/families.h"
#include "zoo/inception.h"

namespace tide {
namespace {

using namespace inception;

const Window kThreeValid = Window::square(3);

struct Link {
  std::int64_t channels;
  Window window;
};

// A chain of convolutions: "name_1", "name_2", ...
Value chain(Builder& net, Value x, const std::vector<Link>& links, const std::string& name) {
  for (std::size_t i = 0; i < links.size(); ++i)
    x = convolution_norm_relu(net, x, links[i].channels, links[i].window, fmt::format("{}_{}", name, i + 1), kNorm);
  return x;
}

Value pooled(Builder& net, Value x, std::int64_t channels, const std::string& name) {
  x = net.average_pool(x, {.window = Window::square(3, 1, 1)}, name + ".pool");
  return chain(net, x, {{channels, kOne}}, name + ".branch_pool");
}

Value halved(Builder& net, Value x, const std::string& name) {
  return net.max_pool(x, {.window = kThreeHalving}, name + ".pool");
}

Value stem(Builder& net, Value x) {
  x = chain(net, x, {{32, kThreeHalving}, {32, kThreeValid}, {64, kThree}}, "stem1");
  const Value pooled3 = halved(net, x, "stem2");
  const Value convolved3 = chain(net, x, {{96, kThreeHalving}}, "stem2.branch");
  x = net.concat({pooled3, convolved3}, "stem2.concat");
  const Value small = chain(net, x, {{64, kOne}, {96, kThreeValid}}, "stem3.branch3x3");
  const Value large = chain(net, x, {{64, kOne}, {64, kWide7}, {64, kHigh7}, {96, kThreeValid}}, "stem3.branch7x7");
  x = net.concat({small, large}, "stem3.concat");
  const Value convolved5 = chain(net, x, {{192, kThreeHalving}}, "stem4.branch");
  return net.concat({convolved5, halved(net, x, "stem4")}, "stem4.concat");
}

Value module_a(Builder& net, Value x, const std::string& name) {
  const Value one = chain(net, x, {{96, kOne}}, name + ".branch1x1");
  const Value three = chain(net, x, {{64, kOne}, {96, kThree}}, name + ".branch3x3");
  const Value twice = chain(net, x, {{64, kOne}, {96, kThree}, {96, kThree}}, name + ".branch3x3dbl");
  return net.concat({one, three, twice, pooled(net, x, 96, name)}, name + ".concat");
}

Value reduction_a(Builder& net, Value x, const std::string& name) {
  const Value three = chain(net, x, {{384, kThreeHalving}}, name + ".branch3x3");
  const Value twice = chain(net, x, {{192, kOne}, {224, kThree}, {256, kThreeHalving}}, name + ".branch3x3dbl");
  return net.concat({three, twice, halved(net, x, name)}, name + ".concat");
}

Value module_b(Builder& net, Value x, const std::string& name) {
  const Value one = chain(net, x, {{384, kOne}}, name + ".branch1x1");
  const Value seven = chain(net, x, {{192, kOne}, {224, kWide7}, {256, kHigh7}}, name + ".branch7x7");
  const Value twice =
      chain(net, x, {{192, kOne}, {192, kHigh7}, {224, kWide7}, {224, kHigh7}, {256, kWide7}}, name + ".branch7x7dbl");
  return net.concat({one, seven, twice, pooled(net, x, 128, name)}, name + ".concat");
}

Value reduction_b(Builder& net, Value x, const std::string& name) {
  const Value three = chain(net, x, {{192, kOne}, {192, kThreeHalving}}, name + ".branch3x3");
  const Value seven =
      chain(net, x, {{256, kOne}, {256, kWide7}, {320, kHigh7}, {320, kThreeHalving}}, name + ".branch7x7");
  return net.concat({three, seven, halved(net, x, name)}, name + ".concat");
}

Value module_c(Builder& net, Value x, const std::string& name) {
  const Value one = chain(net, x, {{256, kOne}}, name + ".branch1x1");
  const Value three = chain(net, x, {{384, kOne}}, name + ".branch3x3");
  const Value three_wide = chain(net, three, {{256, kWide3}}, name + ".branch3x3_wide");
  const Value three_high = chain(net, three, {{256, kHigh3}}, name + ".branch3x3_high");
  const Value twice = chain(net, x, {{384, kOne}, {448, kHigh3}, {512, kWide3}}, name + ".branch3x3dbl");
  const Value twice_wide = chain(net, twice, {{256, kWide3}}, name + ".branch3x3dbl_wide");
  const Value twice_high = chain(net, twice, {{256, kHigh3}}, name + ".branch3x3dbl_high");
  return net.concat({one, three_wide, three_high, twice_wide, twice_high, pooled(net, x, 256, name)}, name + ".concat");
}

}  // namespace

Network make_inception_v4(const ZooRequest& request) {
  Builder net(request.name);
  Value x = stem(net, net.input(request.sample, "data"));
  for (int i = 1; i <= 4; ++i) x = module_a(net, x, fmt::format("a{}", i));
  x = reduction_a(net, x, "reduction_a");
  for (int i = 1; i <= 7; ++i) x = module_b(net, x, fmt::format("b{}", i));
  x = reduction_b(net, x, "reduction_b");
  for (int i = 1; i <= 3; ++i) x = module_c(net, x, fmt::format("c{}", i));
  classify(net, x, request.classes, 0.2);
  return std::move(net).build();
}

}  // namespace tide
