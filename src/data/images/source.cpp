#include "data/images/source.h"

#include "base/error.h"

namespace tide {

StoredImage ImageSource::mask(std::int64_t /*index*/) const { throw Error("{} has no masks", name()); }

std::vector<std::string> numbered_names(std::int64_t classes) {
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < classes; ++c) names.push_back(std::to_string(c));
  return names;
}

ImageExtents extents_of(const StoredImage& image) {
  if (image.raw) return {image.height, image.width};
  return image_extents(image.bytes, image.name);
}

DecodedPart part_of(const StoredImage& image, const PixelBox& box, const DecodeOptions& options) {
  if (!image.raw) return decode_part(image.bytes, image.name, box, options);
  Image whole{image.height, image.width, options.channels, {}};
  const std::int64_t pixels = image.height * image.width;
  whole.pixels.resize(static_cast<std::size_t>(pixels * options.channels));
  const auto at = [&](std::int64_t channel, std::int64_t pixel) {
    return std::to_integer<std::uint8_t>(image.bytes[static_cast<std::size_t>(
        image.interleaved ? pixel * image.channels + channel : channel * pixels + pixel)]);
  };
  for (std::int64_t i = 0; i < pixels; ++i)
    for (std::int64_t c = 0; c < options.channels; ++c) {
      // Grey for colours and the other way round.
      const bool to_grey = options.channels == 1 && image.channels == 3;
      whole.pixels[static_cast<std::size_t>(i * options.channels + c)] =
          to_grey ? static_cast<std::uint8_t>((299 * at(0, i) + 587 * at(1, i) + 114 * at(2, i)) / 1000)
                  : at(image.channels == 1 ? 0 : c, i);
    }
  return {std::move(whole), 0, 0, 1};
}

}  // namespace tide
