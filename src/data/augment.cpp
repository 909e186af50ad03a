#include "data/augment.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/names.h"
#include "base/random.h"

namespace tide {
namespace {

constexpr std::array<std::string_view, 3> kCrops{"none", "resized", "padded"};

// One draw after another of a sample's numbers.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t sample, std::uint64_t pass) : seed_(seed), sample_(sample), pass_(pass) {}
  double unit() {
    if (next_ % 4 == 0) block_ = random_block(seed_, RandomUse::augmentation, pass_, 0, sample_, next_ / 4);
    return static_cast<double>(to_unit(block_[next_++ % 4]));
  }
  double between(double low, double high) { return low + (high - low) * unit(); }

 private:
  std::uint64_t seed_, sample_, pass_, next_ = 0;
  Random4 block_{};
};

// Ten tries for a box within the image, as is usual; else the largest in the middle of a usual shape.
ResampleBox resized_box(Draws& draws, const Augmentation& augmentation, double height, double width) {
  constexpr double kWidest = 4.0 / 3;
  for (int i = 0; i < 10; ++i) {
    const double area = height * width * draws.between(augmentation.smallest, 1);
    const double ratio = std::exp(draws.between(-std::log(kWidest), std::log(kWidest)));
    const double w = std::round(std::sqrt(area * ratio)), h = std::round(std::sqrt(area / ratio));
    const double top = draws.unit(), left = draws.unit();
    if (w < 1 || h < 1 || w > width || h > height) continue;
    return {std::floor(top * (height - h + 1)), std::floor(left * (width - w + 1)), h, w};
  }
  const double ratio = std::clamp(width / height, 1 / kWidest, kWidest);
  const double w = std::min(width, std::round(height * ratio)), h = std::min(height, std::round(width / ratio));
  return {std::floor((height - h) / 2), std::floor((width - w) / 2), h, w};
}

float grey(const std::uint8_t* pixel) {
  return 0.299F * static_cast<float>(pixel[0]) + 0.587F * static_cast<float>(pixel[1]) +
         0.114F * static_cast<float>(pixel[2]);
}

}  // namespace

Crop crop_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kCrops.size(); ++i)
    if (kCrops[i] == name) return static_cast<Crop>(i);
  throw Error("--crop '{}' is unknown; there is {}", name, fmt::join(kCrops, ", "));
}

Alteration draw(const Augmentation& augmentation, std::uint64_t sample, std::uint64_t pass, std::int64_t height,
                std::int64_t width, std::int64_t to_height, std::int64_t to_width) {
  Draws draws(augmentation.seed, sample, pass);
  Alteration alteration;
  alteration.flipped = draws.unit() < 0.5 && augmentation.flip;
  const auto factor = [&] { return draws.between(std::max(0.0, 1 - augmentation.jitter), 1 + augmentation.jitter); };
  alteration.brightness = factor();
  alteration.contrast = factor();
  alteration.saturation = factor();
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  alteration.box = {0, 0, h, w};
  if (augmentation.crop == Crop::resized) alteration.box = resized_box(draws, augmentation, h, w);
  if (augmentation.crop == Crop::padded) {
    // In whole pixels of the result.
    const std::int64_t up = to_height / 8, aside = to_width / 8;
    const auto moved = [&](std::int64_t most) {
      return static_cast<double>(
          std::min(2 * most, static_cast<std::int64_t>(draws.unit() * static_cast<double>(2 * most + 1))) - most);
    };
    alteration.box.top = moved(up) * h / static_cast<double>(to_height);
    alteration.box.left = moved(aside) * w / static_cast<double>(to_width);
  }
  return alteration;
}

ResampleBox middle_of(std::int64_t height, std::int64_t width, std::int64_t to_height, std::int64_t to_width,
                      double kept) {
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  const double rows = static_cast<double>(to_height), columns = static_cast<double>(to_width);
  const double scale = kept * std::min(h / rows, w / columns);
  return {(h - scale * rows) / 2, (w - scale * columns) / 2, scale * rows, scale * columns};
}

void flip_columns(Image& image) {
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::int64_t y = 0; y < image.height; ++y) {
    std::uint8_t* left = image.pixels.data() + y * image.width * image.channels;
    std::uint8_t* right = left + (image.width - 1) * image.channels;
    for (; left < right; left += channels, right -= channels) std::swap_ranges(left, left + channels, right);
  }
}

// Brightness, then contrast around the mean grey, then saturation around each pixel's grey.
void change_colours(Image& image, const Alteration& alteration) {
  if (alteration.brightness == 1 && alteration.contrast == 1 && alteration.saturation == 1) return;
  const auto byte = [](float value) { return static_cast<std::uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F)); };
  const auto brightness = static_cast<float>(alteration.brightness);
  for (std::uint8_t& value : image.pixels) value = byte(brightness * static_cast<float>(value));
  const bool coloured = image.channels == 3;
  const std::size_t pixels = image.pixels.size() / static_cast<std::size_t>(image.channels);
  double sum = 0;
  for (std::size_t i = 0; i < pixels; ++i)
    sum += coloured ? static_cast<double>(grey(&image.pixels[3 * i])) : static_cast<double>(image.pixels[i]);
  const auto mean = static_cast<float>(sum / static_cast<double>(pixels)),
             contrast = static_cast<float>(alteration.contrast);
  for (std::uint8_t& value : image.pixels) value = byte(mean + contrast * (static_cast<float>(value) - mean));
  if (!coloured) return;
  const auto saturation = static_cast<float>(alteration.saturation);
  for (std::size_t i = 0; i < pixels; ++i) {
    std::uint8_t* const pixel = &image.pixels[3 * i];
    const float own = grey(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = byte(own + saturation * (static_cast<float>(pixel[c]) - own));
  }
}

void normalize(const Image& image, const Normalization& normalization, std::span<float> values) {
  const auto channels = static_cast<std::size_t>(image.channels);
  // A table of the 256 results of each channel.
  std::array<std::array<float, 256>, 3> table;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t v = 0; v < 256; ++v)
      table[c][v] =
          static_cast<float>((static_cast<double>(v) / 255 - normalization.mean[c]) / normalization.deviation[c]);
  for (std::size_t i = 0; i < values.size(); i += channels)
    for (std::size_t c = 0; c < channels; ++c) values[i + c] = table[c][image.pixels[i + c]];
}

}  // namespace tide
