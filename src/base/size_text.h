// Sizes as people write them: "512MiB", "12GiB", "1.5GB", or plain bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"

namespace tide {

// Throws an Error that quotes the text where it is not a size.
[[nodiscard]] Bytes parse_size(std::string_view text);
// "1.45 GiB", with three significant digits; exact below 1 KiB.
[[nodiscard]] std::string format_size(Bytes bytes);

}  // namespace tide
