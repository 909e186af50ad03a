// What the recursive policy can be told.
#pragma once

#include <cstdint>

namespace tide {

struct RecursiveOptions {
  std::int32_t kept = 1;  // how many results are kept on each level
};

}  // namespace tide
