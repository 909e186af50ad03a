// VGG (K. Simonyan and A. Zisserman, 2015), without batch norm.
#include <array>

#include "zoo/blocks.h"
#include "zoo/families.h"

namespace tide {
namespace {

Network make_vgg(const ZooRequest& request, const std::array<std::int64_t, 5>& convolutions) {
  Builder net(request.name);
  Value x = vgg_stages(net, net.input(request.sample, "data"), convolutions);
  for (const int number : {1, 2}) {
    x = net.fully_connected(x, {.channels = 4096}, fmt::format("fc{}", number));
    x = net.relu(x, fmt::format("fc{}.relu", number));
    x = net.dropout(x, {}, fmt::format("dropout{}", number));
  }
  x = net.fully_connected(x, {.channels = request.classes}, "fc3");
  net.softmax_cross_entropy(x, {}, "softmax");
  return std::move(net).build();
}

}  // namespace

Network make_vgg16(const ZooRequest& request) { return make_vgg(request, {2, 2, 3, 3, 3}); }

Network make_vgg19(const ZooRequest& request) { return make_vgg(request, {2, 2, 4, 4, 4}); }

// moDNN's "VGG-19 with more convolutions": VGG-19's counts times 98/16, the remainder to
// the last stages. Outputs and gradients are then 92 GB at batch 128; moDNN says nearly 100.
Network make_vgg101(const ZooRequest& request) { return make_vgg(request, {12, 12, 24, 25, 25}); }

}  // namespace tide
