// Speeds as people write them.
#pragma once

#include <string_view>

namespace tide {

// "2GB/s", "1.5GiB/s" or, without the "/s", a plain size: bytes per second. Throws an Error that
// quotes the option and the text for anything else.
[[nodiscard]] double parse_link_rate(std::string_view text, std::string_view option = "--link");

}  // namespace tide
