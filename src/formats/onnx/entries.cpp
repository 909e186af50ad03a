#include "formats/onnx/entries.h"

#include <cstddef>
#include <optional>

namespace tide {
namespace {

// Fields of a message in the format of protobuf.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : left_(bytes) {}

  struct Field {
    std::uint64_t number = 0;
    std::optional<std::span<const std::byte>> content;  // of texts and messages
  };
  // Nothing at the end, and where what follows is damaged.
  std::optional<Field> next() {
    const auto key = number();
    if (!key) return std::nullopt;
    Field field{*key >> 3U, std::nullopt};
    switch (*key & 7U) {
      case 0: return number() ? std::optional(field) : std::nullopt;
      case 1: return take(8) ? std::optional(field) : std::nullopt;
      case 5: return take(4) ? std::optional(field) : std::nullopt;
      case 2: break;
      default: return std::nullopt;
    }
    const auto length = number();
    if (length) field.content = take(*length);
    return field.content ? std::optional(field) : std::nullopt;
  }

 private:
  std::optional<std::uint64_t> number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(left_[0]);
      left_ = left_.subspan(1);
      value |= (byte & 127U) << shift;
      if (byte < 128) return value;
    }
    return std::nullopt;
  }
  std::optional<std::span<const std::byte>> take(std::uint64_t count) {
    if (count > left_.size()) return std::nullopt;
    const auto taken = left_.first(static_cast<std::size_t>(count));
    left_ = left_.subspan(static_cast<std::size_t>(count));
    return taken;
  }

  std::span<const std::byte> left_;
};

// Messages in messages, as deep as the schema goes; texts that look like them count, too, which is no harm.
std::int64_t count_within(std::span<const std::byte> bytes, int depth) {
  std::int64_t count = 0;
  Fields fields(bytes);
  while (const auto field = fields.next()) {
    if (!field->content) continue;
    ++count;
    if (depth > 0) count += count_within(*field->content, depth - 1);
  }
  return count;
}

constexpr std::uint64_t kGraphField = 7;

}  // namespace

std::int64_t count_onnx_entries(std::span<const std::byte> bytes) {
  std::int64_t count = 0;
  Fields fields(bytes);
  while (const auto field = fields.next()) {
    if (!field->content) continue;
    ++count;
    if (field->number != kGraphField) continue;
    Fields graph(*field->content);
    while (const auto inner = graph.next())
      if (inner->content) count += 1 + count_within(*inner->content, 2);
  }
  return count;
}

}  // namespace tide
