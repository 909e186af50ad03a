#include "base/size_text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace tide {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<Unit, 13> kUnits{{{"", 1},
                                       {"B", 1},
                                       {"KiB", 1LL << 10},
                                       {"MiB", 1LL << 20},
                                       {"GiB", 1LL << 30},
                                       {"TiB", 1LL << 40},
                                       {"kB", 1000},
                                       {"KB", 1000},
                                       {"MB", 1000'000},
                                       {"GB", 1000'000'000},
                                       {"TB", 1000'000'000'000},
                                       {"M", 1LL << 20},
                                       {"G", 1LL << 30}}};

[[noreturn]] void fail(std::string_view text) {
  throw Error("'{}' is not a size; write plain bytes or a number with KiB, MiB, GiB, kB, MB or GB, such as 512MiB",
              text);
}

}  // namespace

Bytes parse_size(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) fail(text);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);

  for (const Unit& known : kUnits) {
    if (known.name != unit) continue;
    // Whole numbers stay exact; only a fraction goes through floating point.
    std::int64_t whole = 0;
    const auto [whole_end, whole_error] = std::from_chars(text.data(), end, whole);
    if (whole_error == std::errc{} && whole_end == end) return Bytes(checked_multiply(whole, known.bytes));
    const double bytes = number * static_cast<double>(known.bytes);
    if (bytes >= 9.2e18) throw Error("'{}' is more bytes than fit in 63 bits", text);
    return Bytes(static_cast<std::int64_t>(std::llround(bytes)));
  }
  fail(text);
}

std::string format_size(Bytes bytes) {
  const auto count = static_cast<double>(bytes.count());
  if (bytes.count() < 1024) return fmt::format("{} B", bytes.count());
  constexpr std::array<std::string_view, 5> kNames{"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = count / 1024;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kNames[unit]);
}

}  // namespace tide
