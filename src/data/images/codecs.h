// What decode.cpp is made of.
#pragma once

#include "data/images/decode.h"

namespace tide {

// Larger ones are refused.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;

[[nodiscard]] ImageExtents jpeg_extents(std::span<const std::byte> bytes, const std::string& source);
[[nodiscard]] DecodedPart decode_jpeg(std::span<const std::byte> bytes, const std::string& source, const PixelBox& box,
                                      const DecodeOptions& options);
[[nodiscard]] ImageExtents png_extents(std::span<const std::byte> bytes, const std::string& source);
// As grey or colours; `raw`: numbers as they are in the file.
[[nodiscard]] Image decode_png(std::span<const std::byte> bytes, const std::string& source, std::int64_t channels,
                               bool raw);

// Throws where so few bytes cannot be an image of that size. `most` pixels can be in a byte.
void check_extents(const ImageExtents& extents, std::size_t bytes, std::int64_t most, const std::string& source);

}  // namespace tide
