// Files of data/ that are part of the program; their definitions are made by CMake.
#pragma once

#include <span>

namespace tide {

[[nodiscard]] std::span<const unsigned char> embedded_digits();

}  // namespace tide
