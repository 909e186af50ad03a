// JPEG and PNG files, by libjpeg-turbo and libpng. Which of the two one is, its first bytes say. What a header claims
// is held against the bytes that are there before anything is allocated.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/images/image.h"

namespace tide {

struct ImageExtents {
  std::int64_t height = 0, width = 0;
};

// A part of an image in pixels.
struct PixelBox {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

// Throws an Error that says what is wrong; `source` stands for the file.
[[nodiscard]] ImageExtents image_extents(std::span<const std::byte> bytes, const std::string& source);

// What was decoded: at least the part that was asked for, perhaps smaller than it is, by one of the whole numbers that
// decoders can do at no cost.
struct DecodedPart {
  Image image;
  std::int64_t top = 0, left = 0;  // of `image`, in its own pixels, within the whole
  std::int64_t shrunk = 1;         // each of its pixels is so many high and wide
};
struct DecodeOptions {
  std::int64_t channels = 3;  // 1 (grey) or 3 (red, green, blue)
  // A part that has at least twice these extents may be shrunk, not below them.
  std::int64_t least_height = 0, least_width = 0;
};
[[nodiscard]] DecodedPart decode_part(std::span<const std::byte> bytes, const std::string& source, const PixelBox& box,
                                      const DecodeOptions& options);
// A PNG whose pixels are numbers of classes: grey values, or places in its palette.
[[nodiscard]] Image decode_mask(std::span<const std::byte> bytes, const std::string& source);

}  // namespace tide
