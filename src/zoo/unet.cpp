// U-Net (O. Ronneberger et al., 2015), padded so that the result is as large as the image, with batch norms. Pixels
// that have no class do not count.
#include "zoo/families.h"
#include "zoo/mobile_blocks.h"

namespace tide {
namespace {

constexpr int kLevels = 4;

Value twice(Builder& net, Value x, std::int64_t channels, const std::string& name) {
  x = normalized(net, x, {.channels = channels, .kernel = 3, .relu = true}, name + ".0", name + ".1");
  return normalized(net, x, {.channels = channels, .kernel = 3, .relu = true}, name + ".3", name + ".4");
}

}  // namespace

Network make_unet(const ZooRequest& request) {
  constexpr std::int64_t kMultiple = 1 << kLevels;
  if (request.sample.height() % kMultiple != 0 || request.sample.width() % kMultiple != 0)
    throw Error("{}: the sample {} is not a multiple of {} high and wide; use for instance 3x256x256", request.name,
                sample_text(request.sample), kMultiple);
  Builder net(request.name);
  std::int64_t channels = 64;
  Value x = twice(net, net.input(request.sample, "data"), channels, "down0");
  std::vector<Value> skipped;
  for (int level = 1; level <= kLevels; ++level) {
    skipped.push_back(x);
    channels *= 2;
    x = twice(net, net.max_pool(x, {.window = Window::square(2, 2)}, fmt::format("pool{}", level)), channels,
              fmt::format("down{}", level));
  }
  for (int level = kLevels; level >= 1; --level) {
    channels /= 2;
    x = net.transposed_convolution(x, {.channels = channels, .window = Window::square(2, 2)},
                                   fmt::format("up{}", level));
    x = net.concat({skipped[static_cast<std::size_t>(level - 1)], x}, fmt::format("cat{}", level));
    x = twice(net, x, channels, fmt::format("join{}", level));
  }
  x = net.convolution(x, {.channels = request.classes}, "out");
  net.softmax_cross_entropy(x, {.counted = true}, "softmax");
  return std::move(net).build();
}

}  // namespace tide
