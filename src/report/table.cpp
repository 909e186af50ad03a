#include "report/table.h"

#include <algorithm>

namespace tide {
namespace {

// Characters, not bytes: cells may hold UTF-8.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = width_of(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[c]));
    widths.push_back(width);
  }
  std::string result;
  const auto line = [&](auto cell_of) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string cell = cell_of(c);
      const std::string space(widths[c] - width_of(cell), ' ');
      if (c > 0) text += "  ";
      text += columns_[c].align == Align::right ? space + cell : cell + space;
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    result += text + "\n";
  };
  line([&](std::size_t c) { return columns_[c].title; });
  line([&](std::size_t c) { return std::string(widths[c], '-'); });
  for (const auto& row : rows_) line([&](std::size_t c) { return row[c]; });
  return result;
}

}  // namespace tide
