// A fully convolutional network for segmentation (E. Shelhamer et al., 2017), as FCN-32s on
// VGG-16. The original pads the image by 100 and crops at the end; here fc6 is padded by 3
// instead, so that a sample of 32a x 32b pixels gives 32a x 32b labels without a crop.
#include <array>

#include "zoo/blocks.h"
#include "zoo/families.h"

namespace tide {

Network make_fcn(const ZooRequest& request) {
  if (request.sample.height() % 32 != 0 || request.sample.width() % 32 != 0)
    throw Error("{}: the sample {} is not a multiple of 32 high and wide; use for instance 3x224x224", request.name,
                sample_text(request.sample));
  constexpr std::array<std::int64_t, 5> kVgg16 = {2, 2, 3, 3, 3};
  Builder net(request.name);
  Value x = vgg_stages(net, net.input(request.sample, "data"), kVgg16);
  x = net.relu(net.convolution(x, {.channels = 4096, .window = Window::square(7, 1, 3)}, "fc6"), "fc6.relu");
  x = net.dropout(x, {}, "dropout6");
  x = net.relu(net.convolution(x, {.channels = 4096}, "fc7"), "fc7.relu");
  x = net.dropout(x, {}, "dropout7");
  x = net.convolution(x, {.channels = request.classes}, "score");
  x = net.transposed_convolution(x, {.channels = request.classes, .window = Window::square(64, 32, 16), .bias = false},
                                 "upscore");
  net.softmax_cross_entropy(x, {}, "softmax");
  return std::move(net).build();
}

}  // namespace tide
