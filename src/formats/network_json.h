// A network as a JSON file, for people and for other programs to write:
//
//   {"name": "small", "layers": [
//     {"kind": "input", "name": "in", "channels": 1, "height": 8, "width": 8},
//     {"kind": "convolution", "name": "c1", "inputs": ["in"], "channels": 32, "kernel": [3, 3], "pad": [1, 1, 1, 1]},
//     {"kind": "relu", "name": "r1", "inputs": ["c1"]},
//     {"kind": "fully_connected", "name": "f1", "inputs": ["r1"], "channels": 10},
//     {"kind": "softmax_cross_entropy", "name": "loss", "inputs": ["f1"]}]}
//
// Layers may stand in any order; "split1:2" is the third output of split1. Every layer may
// have "share" (use the parameters of that layer), "frozen" and "mirror". Windows are "kernel"
// [height, width], "stride", "dilation" and "pad" [top, left, bottom, right]; what is left
// out has the default of its kind (network/kinds/). Unknown fields are errors, not ignored.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "network/network.h"

namespace tide {

// Larger files are refused before they are read.
inline constexpr std::int64_t kLargestNetworkFile = std::int64_t{256} << 20;

// Throws an Error that names the file and, where there is one, the layer and the field.
[[nodiscard]] Network read_network(const std::filesystem::path& path);
void write_network(const Network& network, const std::filesystem::path& path);

// The same on text; `source` stands for the file in messages.
[[nodiscard]] Network parse_network(std::string_view text, const std::string& source);
[[nodiscard]] std::string format_network(const Network& network);

}  // namespace tide
