#include "data/images/decode.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/error.h"
#include "data/images/codecs.h"

namespace tide {
namespace {

bool begins_with(std::span<const std::byte> bytes, std::initializer_list<int> start) {
  return bytes.size() >= start.size() && std::equal(start.begin(), start.end(), bytes.begin(),
                                                    [](int a, std::byte b) { return a == std::to_integer<int>(b); });
}
bool is_jpeg(std::span<const std::byte> bytes) { return begins_with(bytes, {0xFF, 0xD8, 0xFF}); }
bool is_png(std::span<const std::byte> bytes) {
  return begins_with(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'});
}

[[noreturn]] void throw_unknown_image(const std::string& source) {
  throw Error("{}: is neither a JPEG nor a PNG file", source);
}

}  // namespace

void check_extents(const ImageExtents& extents, std::size_t bytes, std::int64_t most, const std::string& source) {
  if (extents.height < 1 || extents.width < 1) throw Error("{}: has no pixels", source);
  const std::int64_t pixels = checked_multiply(extents.height, extents.width);
  if (pixels > kMostPixels)
    throw Error("{}: has {}x{} pixels; images of more than {} are not read", source, extents.width, extents.height,
                kMostPixels);
  if (pixels / most > static_cast<std::int64_t>(bytes))
    throw Error("{}: claims {}x{} pixels, which its {} bytes cannot hold", source, extents.width, extents.height,
                bytes);
}

ImageExtents image_extents(std::span<const std::byte> bytes, const std::string& source) {
  if (is_jpeg(bytes)) return jpeg_extents(bytes, source);
  if (is_png(bytes)) return png_extents(bytes, source);
  throw_unknown_image(source);
}

DecodedPart decode_part(std::span<const std::byte> bytes, const std::string& source, const PixelBox& box,
                        const DecodeOptions& options) {
  if (is_jpeg(bytes)) return decode_jpeg(bytes, source, box, options);
  if (is_png(bytes)) return {decode_png(bytes, source, options.channels, false), 0, 0, 1};
  throw_unknown_image(source);
}

Image decode_mask(std::span<const std::byte> bytes, const std::string& source) {
  if (!is_png(bytes)) throw Error("{}: is not a PNG file, as a mask has to be", source);
  return decode_png(bytes, source, 1, true);
}

}  // namespace tide
