#include "cli/link_rate.h"

#include "base/size_text.h"

namespace tide {

double parse_link_rate(std::string_view text, std::string_view option) {
  std::string_view size = text;
  if (size.ends_with("/s")) size.remove_suffix(2);
  try {
    const Bytes bytes = parse_size(size);
    if (!bytes.is_zero()) return static_cast<double>(bytes.count());
  } catch (const Error&) {  // said below, as a speed
  }
  throw Error("{} '{}' is not a speed; write bytes per second, such as 2GB/s", option, text);
}

}  // namespace tide
