// Pixels as bytes: rows of columns of channels.
#pragma once

#include <cstdint>
#include <vector>

namespace tide {

struct Image {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels;
};

}  // namespace tide
