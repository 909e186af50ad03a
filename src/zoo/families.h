// What the files of this folder offer to zoo.cpp: one function per model or family.
#pragma once

#include <string>
#include <vector>

#include "network/builder.h"

namespace tide {

struct ZooRequest {
  std::string name;  // as the user wrote it
  Shape sample;
  std::int64_t classes = 0;
  std::vector<std::int64_t> numbers;  // behind the colon: "resnet:3,4,6,3"
};

[[nodiscard]] Network make_lenet(const ZooRequest& request);
[[nodiscard]] Network make_digits(const ZooRequest& request);
[[nodiscard]] Network make_alexnet(const ZooRequest& request);
[[nodiscard]] Network make_vgg16(const ZooRequest& request);
[[nodiscard]] Network make_vgg19(const ZooRequest& request);
[[nodiscard]] Network make_vgg101(const ZooRequest& request);
[[nodiscard]] Network make_fcn(const ZooRequest& request);
[[nodiscard]] Network make_resnet18(const ZooRequest& request);
[[nodiscard]] Network make_resnet34(const ZooRequest& request);
// Bottleneck blocks; `numbers` are the blocks of the four stages.
[[nodiscard]] Network make_resnet(const ZooRequest& request);
[[nodiscard]] Network make_resnext(const ZooRequest& request);
[[nodiscard]] Network make_wide_resnet(const ZooRequest& request);
// SuperNeurons' variant of make_resnet.
[[nodiscard]] Network make_superneurons_resnet(const ZooRequest& request);
// `numbers` is the depth.
[[nodiscard]] Network make_preresnet(const ZooRequest& request);
[[nodiscard]] Network make_inception_v3(const ZooRequest& request);
[[nodiscard]] Network make_inception_v4(const ZooRequest& request);
[[nodiscard]] Network make_densenet121(const ZooRequest& request);
[[nodiscard]] Network make_mobilenet_v2(const ZooRequest& request);
[[nodiscard]] Network make_mobilenet_v3_large(const ZooRequest& request);
[[nodiscard]] Network make_mobilenet_v3_small(const ZooRequest& request);
// `numbers` are factors of width and depth and the dropout's rate, in hundredths.
[[nodiscard]] Network make_efficientnet(const ZooRequest& request);
[[nodiscard]] Network make_regnet_y_400mf(const ZooRequest& request);
[[nodiscard]] Network make_regnet_y_800mf(const ZooRequest& request);
[[nodiscard]] Network make_regnet_x_400mf(const ZooRequest& request);
[[nodiscard]] Network make_regnet_x_800mf(const ZooRequest& request);
[[nodiscard]] Network make_shufflenet_v2(const ZooRequest& request);
[[nodiscard]] Network make_googlenet(const ZooRequest& request);
[[nodiscard]] Network make_squeezenet(const ZooRequest& request);
[[nodiscard]] Network make_deeplab_v3(const ZooRequest& request);
[[nodiscard]] Network make_unet(const ZooRequest& request);
// `numbers` are layers, hidden units and time steps.
[[nodiscard]] Network make_lstm(const ZooRequest& request);

// Deeper models than this many repeated units are refused: the name is a typing error.
inline constexpr std::int64_t kMostUnits = 200'000;

}  // namespace tide
