// How a parameter of a network is called, and how it lies, in somebody else's file of weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tide {

// The parameter's elements, row-major, are those of the array named `array` once that is seen with extents `seen_as`
// and its axes are put in the order `axes`. Both are empty where the elements lie alike, whatever the shapes:
// [O, I, 1, 1] and [O, I]. A matrix product that is written the other way round is seen as {in, out} with axes {1, 0}.
struct WeightName {
  std::string parameter;  // its name in the network; running statistics are parameters, too
  std::string array;      // "layer1.0.bn1.running_mean"
  std::vector<std::int64_t> seen_as;
  std::vector<std::int64_t> axes;
};

}  // namespace tide
