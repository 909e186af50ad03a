// What the sublinear policy can be told.
#pragma once

#include <string>
#include <vector>

namespace tide {

// How often a layer is run again at most (Layer::mirror).
struct MirrorCount {
  std::string layer;
  std::int32_t count = 0;
};

struct SublinearOptions {
  std::vector<MirrorCount> mirror = {};  // in addition to the network's own; any at all: no search
  bool weigh_by_cost = true;             // where the budget leaves room, keep what takes longest to run
};

}  // namespace tide
