// Pre-activation residual networks ("Identity mappings in deep residual networks", K. He et
// al., 2016) for ImageNet, of any depth, as the sublinear paper grows them.
//
// A convolution with its batch norm and ReLU counts as one layer: the first convolution,
// three per unit and the classifier make depth = 3 units + 2. The first and the last stage
// have 3 units (fewer below depth 38), the second two fifths of the others and the third the rest,
// which is the original's 3,4,6,3 at depth 50 and 3,24,36,3 at depth 200.
#include <algorithm>
#include <array>

#include "zoo/blocks.h"
#include "zoo/families.h"

namespace tide {
namespace {

std::array<std::int64_t, 4> units_of(const ZooRequest& request) {
  constexpr std::int64_t kSmallest = 4, kLargest = kMostUnits;
  const std::int64_t depth = request.numbers.front();
  const std::int64_t below = std::clamp(depth < 2 ? 0 : (depth - 2) / 3, kSmallest, kLargest);
  if (depth != 3 * below + 2) {
    if (depth > 3 * below + 2 && below < kLargest)
      throw Error("{}: the depth must be 3 units + 2; the nearest are {} and {}", request.name, 3 * below + 2,
                  3 * below + 5);
    throw Error("{}: the depth must be 3 units + 2, from {} to {}; the nearest is {}", request.name, 3 * kSmallest + 2,
                3 * kLargest + 2, 3 * below + 2);
  }
  const std::int64_t ends = std::min<std::int64_t>(3, below / 4), middle = below - 2 * ends;
  const std::int64_t second = std::max<std::int64_t>(1, middle * 2 / 5);
  return {ends, second, middle - second, ends};
}

Value unit(Builder& net, Value x, std::int64_t width, std::int64_t stride, bool project, const std::string& name) {
  // The projection starts behind the first activation, which both branches share.
  const std::string first = name + ".conv1";
  const Value active = net.relu(net.batch_norm(x, {}, first + ".norm"), first + ".relu");
  Value branch = plain_convolution(net, active, width, Window::square(1), first);
  branch = norm_relu_convolution(net, branch, width, Window::square(3, stride, 1), name + ".conv2");
  branch = norm_relu_convolution(net, branch, width * 4, Window::square(1), name + ".conv3");
  const Value shortcut =
      project ? plain_convolution(net, active, width * 4, Window::square(1, stride), name + ".projection") : x;
  return net.add({branch, shortcut}, name + ".add");
}

}  // namespace

Network make_preresnet(const ZooRequest& request) {
  const std::array<std::int64_t, 4> units = units_of(request);
  Builder net(request.name);
  Value x = net.input(request.sample, "data");
  x = convolution_norm_relu(net, x, 64, Window::square(7, 2, 3), "conv1");
  x = net.max_pool(x, {.window = Window::square(3, 2, 1)}, "pool1");
  std::int64_t width = 64;
  for (std::size_t stage = 0; stage < units.size(); ++stage, width *= 2)
    for (std::int64_t i = 0; i < units[stage]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = unit(net, x, width, stride, i == 0, fmt::format("stage{}.unit{}", stage + 1, i + 1));
    }
  x = net.relu(net.batch_norm(x, {}, "last.norm"), "last.relu");
  classify(net, x, request.classes);
  return std::move(net).build();
}

}  // namespace tide
