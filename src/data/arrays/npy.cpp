#include "data/arrays/npy.h"

#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "data/printable.h"

namespace tide {
namespace {

struct TypeName {
  std::string_view name;
  NumberType type;
  std::int64_t bytes;
};
constexpr std::array kTypes{TypeName{"<f8", NumberType::f64, 8}, TypeName{"<f4", NumberType::f32, 4},
                            TypeName{"<i8", NumberType::i64, 8}, TypeName{"<i4", NumberType::i32, 4},
                            TypeName{"|u1", NumberType::u8, 1}};
constexpr std::size_t kMostRanks = 6;

// The header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
std::string_view value_of(std::string_view header, std::string_view key, const std::string& source) {
  const std::string quoted = fmt::format("'{}':", key);
  const std::size_t at = header.find(quoted);
  if (at == std::string_view::npos) throw Error("{}: its header has no '{}'", source, key);
  std::string_view rest = header.substr(at + quoted.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::vector<std::int64_t> shape_of(std::string_view text, const std::string& source) {
  std::vector<std::int64_t> shape;
  if (!text.starts_with('(')) throw Error("{}: its shape cannot be read", source);
  text.remove_prefix(1);
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.starts_with(')')) return shape;
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0 || shape.size() == kMostRanks)
      throw Error("{}: its shape cannot be read, or has more than {} extents", source, kMostRanks);
    shape.push_back(extent);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
}

template <typename Number>
double number_at(std::span<const std::byte> bytes, std::size_t element) {
  Number number;
  std::memcpy(&number, bytes.data() + element * sizeof(Number), sizeof(Number));
  return static_cast<double>(number);
}

}  // namespace

std::int64_t NumberArray::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count = checked_multiply(count, extent);
  return count;
}

double NumberArray::at(std::int64_t element) const {
  const auto i = static_cast<std::size_t>(element);
  switch (type) {
    case NumberType::f64: return number_at<double>(bytes, i);
    case NumberType::f32: return number_at<float>(bytes, i);
    case NumberType::i64: return number_at<std::int64_t>(bytes, i);
    case NumberType::i32: return number_at<std::int32_t>(bytes, i);
    case NumberType::u8: break;
  }
  return number_at<std::uint8_t>(bytes, i);
}

NumberArray read_npy(const std::filesystem::path& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  const std::span<const std::byte> bytes = file->bytes();
  const std::string source = path.string();
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (bytes.size() < 12 || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    throw Error("{}: is not a .npy file", source);
  const bool short_length = std::to_integer<int>(bytes[6]) == 1;
  const std::size_t begin = short_length ? 10 : 12;
  std::size_t length = 0;
  for (std::size_t i = begin; i-- > 8;) length = length << 8 | std::to_integer<std::size_t>(bytes[i]);
  if (length > bytes.size() - begin) throw Error("{}: its header is longer than the file", source);
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + begin, length);

  NumberArray array;
  array.name = source;
  array.file = file;
  const std::string_view type = value_of(header, "descr", source);
  const TypeName* known = nullptr;
  for (const TypeName& candidate : kTypes)
    if (type.starts_with(fmt::format("'{}'", candidate.name))) known = &candidate;
  if (known == nullptr)
    throw Error("{}: has numbers of type {}; save float32, float64, int32, int64 or uint8", source,
                printable(type.substr(0, std::min<std::size_t>(type.find(','), 16))));
  array.type = known->type;
  if (!value_of(header, "fortran_order", source).starts_with("False"))
    throw Error("{}: is in Fortran's order; save numpy.ascontiguousarray of it", source);
  array.shape = shape_of(value_of(header, "shape", source), source);
  array.bytes = bytes.subspan(begin + length);
  std::int64_t wanted = known->bytes;
  for (const std::int64_t extent : array.shape)
    if (__builtin_mul_overflow(wanted, extent, &wanted))
      throw Error("{}: its header speaks of more bytes than there can be", source);
  if (wanted != static_cast<std::int64_t>(array.bytes.size()))
    throw Error("{}: has {} bytes behind its header, which speaks of {}", source, array.bytes.size(), wanted);
  return array;
}

}  // namespace tide
