// Inception-v3 (C. Szegedy et al., 2016) without the auxiliary classifier; widths, padding
// and names of the modules as in torchvision.
#include "zoo/blocks.h"
#include "zoo/families.h"
#include "zoo/inception.h"

namespace tide {
namespace {

using namespace inception;

// One module: branches from one input, named "module.branch".
class Module {
 public:
  Module(Builder& net, Value input, std::string name) : net_(net), input_(input), name_(std::move(name)) {}

  [[nodiscard]] Value input() const { return input_; }
  Value convolution(Value x, std::int64_t channels, const Window& window, const char* branch) {
    return convolution_norm_relu(net_, x, channels, window, name_ + "." + branch, kNorm);
  }
  Value pooled(std::int64_t channels) {
    const PoolOptions pool{.window = Window::square(3, 1, 1), .count_padding = true};
    return convolution(net_.average_pool(input_, pool, name_ + ".pool"), channels, Window::square(1), "branch_pool");
  }
  Value reduced() { return net_.max_pool(input_, {.window = Window::square(3, 2)}, name_ + ".pool"); }
  Value concat(std::vector<Value> branches) { return net_.concat(std::move(branches), name_ + ".concat"); }

 private:
  Builder& net_;
  Value input_;
  std::string name_;
};

Value module_a(Builder& net, Value x, std::int64_t pool_channels, const char* name) {
  Module m(net, x, name);
  const Value one = m.convolution(x, 64, kOne, "branch1x1");
  Value five = m.convolution(x, 48, kOne, "branch5x5_1");
  five = m.convolution(five, 64, Window::square(5, 1, 2), "branch5x5_2");
  Value twice = m.convolution(x, 64, kOne, "branch3x3dbl_1");
  twice = m.convolution(twice, 96, kThree, "branch3x3dbl_2");
  twice = m.convolution(twice, 96, kThree, "branch3x3dbl_3");
  return m.concat({one, five, twice, m.pooled(pool_channels)});
}

Value module_b(Builder& net, Value x, const char* name) {
  Module m(net, x, name);
  const Value three = m.convolution(x, 384, kThreeHalving, "branch3x3");
  Value twice = m.convolution(x, 64, kOne, "branch3x3dbl_1");
  twice = m.convolution(twice, 96, kThree, "branch3x3dbl_2");
  twice = m.convolution(twice, 96, kThreeHalving, "branch3x3dbl_3");
  return m.concat({three, twice, m.reduced()});
}

Value module_c(Builder& net, Value x, std::int64_t width, const char* name) {
  Module m(net, x, name);
  const Value one = m.convolution(x, 192, kOne, "branch1x1");
  Value seven = m.convolution(x, width, kOne, "branch7x7_1");
  seven = m.convolution(seven, width, kWide7, "branch7x7_2");
  seven = m.convolution(seven, 192, kHigh7, "branch7x7_3");
  Value twice = m.convolution(x, width, kOne, "branch7x7dbl_1");
  twice = m.convolution(twice, width, kHigh7, "branch7x7dbl_2");
  twice = m.convolution(twice, width, kWide7, "branch7x7dbl_3");
  twice = m.convolution(twice, width, kHigh7, "branch7x7dbl_4");
  twice = m.convolution(twice, 192, kWide7, "branch7x7dbl_5");
  return m.concat({one, seven, twice, m.pooled(192)});
}

Value module_d(Builder& net, Value x, const char* name) {
  Module m(net, x, name);
  Value three = m.convolution(x, 192, kOne, "branch3x3_1");
  three = m.convolution(three, 320, kThreeHalving, "branch3x3_2");
  Value seven = m.convolution(x, 192, kOne, "branch7x7x3_1");
  seven = m.convolution(seven, 192, kWide7, "branch7x7x3_2");
  seven = m.convolution(seven, 192, kHigh7, "branch7x7x3_3");
  seven = m.convolution(seven, 192, kThreeHalving, "branch7x7x3_4");
  return m.concat({three, seven, m.reduced()});
}

Value module_e(Builder& net, Value x, const char* name) {
  Module m(net, x, name);
  const Value one = m.convolution(x, 320, kOne, "branch1x1");
  const Value three = m.convolution(x, 384, kOne, "branch3x3_1");
  const Value three_wide = m.convolution(three, 384, kWide3, "branch3x3_2a");
  const Value three_high = m.convolution(three, 384, kHigh3, "branch3x3_2b");
  Value twice = m.convolution(x, 448, kOne, "branch3x3dbl_1");
  twice = m.convolution(twice, 384, kThree, "branch3x3dbl_2");
  const Value twice_wide = m.convolution(twice, 384, kWide3, "branch3x3dbl_3a");
  const Value twice_high = m.convolution(twice, 384, kHigh3, "branch3x3dbl_3b");
  return m.concat({one, three_wide, three_high, twice_wide, twice_high, m.pooled(192)});
}

}  // namespace

Network make_inception_v3(const ZooRequest& request) {
  Builder net(request.name);
  const PoolOptions pool{.window = kThreeHalving};
  Value x = net.input(request.sample, "data");
  x = convolution_norm_relu(net, x, 32, kThreeHalving, "conv1a", kNorm);
  x = convolution_norm_relu(net, x, 32, Window::square(3), "conv2a", kNorm);
  x = convolution_norm_relu(net, x, 64, kThree, "conv2b", kNorm);
  x = net.max_pool(x, pool, "pool2");
  x = convolution_norm_relu(net, x, 80, kOne, "conv3b", kNorm);
  x = convolution_norm_relu(net, x, 192, Window::square(3), "conv4a", kNorm);
  x = net.max_pool(x, pool, "pool4");
  x = module_a(net, x, 32, "mixed5b");
  x = module_a(net, x, 64, "mixed5c");
  x = module_a(net, x, 64, "mixed5d");
  x = module_b(net, x, "mixed6a");
  x = module_c(net, x, 128, "mixed6b");
  x = module_c(net, x, 160, "mixed6c");
  x = module_c(net, x, 160, "mixed6d");
  x = module_c(net, x, 192, "mixed6e");
  x = module_d(net, x, "mixed7a");
  x = module_e(net, x, "mixed7b");
  x = module_e(net, x, "mixed7c");
  classify(net, x, request.classes, 0.5);
  return std::move(net).build();
}

}  // namespace tide
