// How training sees an image: another part of it, another way round, in other colours, in each pass. All of it is a
// function of the seed, the sample and the pass.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "data/dataset.h"
#include "data/images/resample.h"

namespace tide {

enum class Crop : std::uint8_t {
  none,     // the whole image, made as large as the network's input
  resized,  // a part of 8 to 100% of its area and of about its shape
  padded,   // as large as the input, moved by up to an eighth of it; what is outside is black
};
// Throws an Error that lists them where it is none of them.
[[nodiscard]] Crop crop_from_name(std::string_view name);

struct Augmentation {
  Crop crop = Crop::none;
  bool flip = false;       // left and right, every other time
  double jitter = 0;       // brightness, contrast and saturation change by up to this share, each
  double smallest = 0.08;  // share of the area of Crop::resized
  std::uint64_t seed = kSeed;
};

// What is done to one sample in one pass.
struct Alteration {
  ResampleBox box;  // of the image
  bool flipped = false;
  double brightness = 1, contrast = 1, saturation = 1;
};
[[nodiscard]] Alteration draw(const Augmentation& augmentation, std::uint64_t sample, std::uint64_t pass,
                              std::int64_t height, std::int64_t width, std::int64_t to_height, std::int64_t to_width);
// The middle of the image, as validation sees it: its shorter side is `kept` parts of it.
[[nodiscard]] ResampleBox middle_of(std::int64_t height, std::int64_t width, std::int64_t to_height,
                                    std::int64_t to_width, double kept);

void flip_columns(Image& image);
void change_colours(Image& image, const Alteration& alteration);

void normalize(const Image& image, const Normalization& normalization, std::span<float> values);

}  // namespace tide
