// A whole file as text.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace tide {

// Throws an Error that names the file where it cannot be read, or has more than `most` bytes, which
// `what` ("a profile") never has.
[[nodiscard]] std::string read_text(const std::filesystem::path& path, Bytes most, std::string_view what);

}  // namespace tide
