// Residual networks (K. He et al., 2015), post-activation; ResNeXt (S. Xie et al., 2017) and Wide ResNet
// (S. Zagoruyko and N. Komodakis, 2016) of bottlenecks. In every add the main branch
// comes first and the shortcut second.
#include <algorithm>

#include "zoo/blocks.h"
#include "zoo/families.h"

namespace tide {
namespace {

struct ResidualOptions {
  bool bottleneck = true;
  bool stride_in_first = false;  // the original's; v1.5 has it in the 3x3
  std::int64_t pool_pad = 1;
  std::int64_t wider = 1;   // so many times the channels within bottlenecks,
  std::int64_t groups = 1;  // whose 3x3 has so many groups
};

Value main_branch(Builder& net, Value x, std::int64_t width, std::int64_t stride, const ResidualOptions& options,
                  const std::string& name) {
  const Window one = Window::square(1);
  if (!options.bottleneck) {
    x = convolution_norm_relu(net, x, width, Window::square(3, stride, 1), name + ".conv1");
    return convolution_norm(net, x, width, Window::square(3, 1, 1), name + ".conv2");
  }
  const std::int64_t first = options.stride_in_first ? stride : 1, second = options.stride_in_first ? 1 : stride;
  const std::int64_t inner = width * options.wider;
  x = convolution_norm_relu(net, x, inner, Window::square(1, first), name + ".conv1");
  x = net.convolution(
      x, {.channels = inner, .window = Window::square(3, second, 1), .groups = options.groups, .bias = false},
      name + ".conv2");
  x = net.relu(net.batch_norm(x, {}, name + ".conv2.norm"), name + ".conv2.relu");
  return convolution_norm(net, x, width * 4, one, name + ".conv3");
}

Value block(Builder& net, Value x, std::int64_t width, std::int64_t stride, const ResidualOptions& options,
            const std::string& name) {
  const std::int64_t channels = options.bottleneck ? width * 4 : width;
  const bool project = stride != 1 || net.shape(x).channels() != channels;
  const Value branch = main_branch(net, x, width, stride, options, name);
  const Value shortcut =
      project ? convolution_norm(net, x, channels, Window::square(1, stride), name + ".projection") : x;
  return net.relu(net.add({branch, shortcut}, name + ".add"), name + ".relu");
}

Network make_residual(const ZooRequest& request, const std::vector<std::int64_t>& blocks,
                      const ResidualOptions& options) {
  std::int64_t total = 0;
  for (const std::int64_t count : blocks) {
    if (count < 1 || count > kMostUnits || (total += count) > kMostUnits)
      throw Error("{}: every stage needs between 1 and {} blocks together; change its numbers", request.name,
                  kMostUnits);
  }
  Builder net(request.name);
  Value x = net.input(request.sample, "data");
  x = convolution_norm_relu(net, x, 64, Window::square(7, 2, 3), "conv1");
  x = net.max_pool(x, {.window = Window::square(3, 2, options.pool_pad)}, "pool1");
  std::int64_t width = 64;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage, width *= 2)
    for (std::int64_t i = 0; i < blocks[stage]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = block(net, x, width, stride, options, fmt::format("stage{}.block{}", stage + 1, i + 1));
    }
  classify(net, x, request.classes);
  return std::move(net).build();
}

}  // namespace

Network make_resnet18(const ZooRequest& request) { return make_residual(request, {2, 2, 2, 2}, {.bottleneck = false}); }

Network make_resnet34(const ZooRequest& request) { return make_residual(request, {3, 4, 6, 3}, {.bottleneck = false}); }

Network make_resnet(const ZooRequest& request) { return make_residual(request, request.numbers, {}); }

// 32 groups of 4 channels in the first stage.
Network make_resnext(const ZooRequest& request) {
  return make_residual(request, request.numbers, {.wider = 2, .groups = 32});
}

Network make_wide_resnet(const ZooRequest& request) { return make_residual(request, request.numbers, {.wider = 2}); }

Network make_superneurons_resnet(const ZooRequest& request) {
  return make_residual(request, request.numbers, {.stride_in_first = true, .pool_pad = 0});
}

}  // namespace tide
