#include "formats/utf8.h"

#include <cstdint>

namespace tide {

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    if (first < 0x80) continue;
    const int more = first >= 0xC2 && first < 0xE0   ? 1
                     : first >= 0xE0 && first < 0xF0 ? 2
                     : first >= 0xF0 && first < 0xF5 ? 3
                                                     : 0;
    if (more == 0) return false;
    std::uint32_t code = first & (0x3FU >> static_cast<unsigned>(more));
    for (int k = 0; k < more; ++k, ++i) {
      if (i >= text.size() || (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80) return false;
      code = code << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
    }
    constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (code < kLeast[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
  }
  return true;
}

}  // namespace tide
