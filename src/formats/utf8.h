// Whether bytes are text.
#pragma once

#include <string_view>

namespace tide {

// UTF-8 as its standard says: nothing longer than need be, no halves of pairs, nothing past U+10FFFF.
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace tide
