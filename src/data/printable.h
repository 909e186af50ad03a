// Texts of files in messages, which are one line.
#pragma once

#include <string>
#include <string_view>

namespace tide {

// With other signs in place of those that are none, and not too long.
inline std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  std::string result(text.substr(0, kLongest));
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return text.size() > kLongest ? result + "..." : result;
}

}  // namespace tide
