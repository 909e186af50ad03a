// Weights from somebody else's file into a network, and out again.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "network/network.h"
#include "zoo/weight_names.h"

namespace tide {

struct LoadedWeights {
  std::map<std::string, std::vector<float>> values;  // by parameter, in logical order
  std::vector<std::string> notes;                    // for people: what was left out; one line each
};

// A safetensors file with arrays by one of the `known` names, by the network's own, or as PyTorch calls those of
// modules that are called as the layers. What the layers before the losses make of other classes than the file's starts
// anew, with a note. Throws an Error where anything else is missing or has another size, and for other files: those of
// torch.save() it says how to convert.
[[nodiscard]] LoadedWeights load_weights(const Network& network, const std::vector<WeightNames>& known,
                                         const std::filesystem::path& path);
// Values by parameter, in logical order, as a safetensors file with the names of `names`; empty: the network's own.
void save_weights(const Network& network, const std::vector<WeightName>& names,
                  const std::map<std::string, std::vector<float>>& values, const std::filesystem::path& path);

}  // namespace tide
