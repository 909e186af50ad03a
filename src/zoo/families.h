// What the files of this folder offer to zoo.cpp: one function per model or family.
#pragma once

#include <string>
#include <vector>

#include "network/builder.h"

namespace tide {

struct ModelRequest {
  std::string name;  // as the user wrote it
  Shape sample;
  std::int64_t classes = 0;
  std::vector<std::int64_t> numbers;  // behind the colon: "resnet:3,4,6,3"
};

[[nodiscard]] Network make_lenet(const ModelRequest& request);
[[nodiscard]] Network make_digits(const ModelRequest& request);
[[nodiscard]] Network make_alexnet(const ModelRequest& request);
[[nodiscard]] Network make_vgg16(const ModelRequest& request);
[[nodiscard]] Network make_vgg19(const ModelRequest& request);
[[nodiscard]] Network make_vgg101(const ModelRequest& request);
[[nodiscard]] Network make_fcn(const ModelRequest& request);
[[nodiscard]] Network make_resnet18(const ModelRequest& request);
[[nodiscard]] Network make_resnet34(const ModelRequest& request);
// Bottleneck blocks; `numbers` are the blocks of the four stages.
[[nodiscard]] Network make_resnet(const ModelRequest& request);
// SuperNeurons' variant of make_resnet.
[[nodiscard]] Network make_superneurons_resnet(const ModelRequest& request);
// `numbers` is the depth.
[[nodiscard]] Network make_preresnet(const ModelRequest& request);
[[nodiscard]] Network make_inception_v3(const ModelRequest& request);
[[nodiscard]] Network make_inception_v4(const ModelRequest& request);
[[nodiscard]] Network make_densenet121(const ModelRequest& request);
// `numbers` are layers, hidden units and time steps.
[[nodiscard]] Network make_lstm(const ModelRequest& request);

// Deeper models than this many repeated units are refused: the name is a typing error.
inline constexpr std::int64_t kMostUnits = 200'000;

}  // namespace tide
