// How PyTorch's model zoos call the parameters of ours, so that their files of weights can be read and ours theirs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "network/network.h"
#include "network/weight_name.h"

namespace tide {

// One way to call all parameters and running statistics of a network, as somebody does.
struct WeightNames {
  std::string whose;  // "torchvision", "timm"
  std::vector<WeightName> names;
};

// Those that are known of a model of the zoo, by its name; torchvision's first. None: nobody else has it.
[[nodiscard]] std::vector<WeightNames> weight_names(const Network& network, std::string_view model);
// The one of them that finds most of its names among `arrays`. REQUIRES: there is one.
[[nodiscard]] const WeightNames& best_match(const std::vector<WeightNames>& known, std::span<const std::string> arrays);

}  // namespace tide
