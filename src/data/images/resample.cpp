#include "data/images/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace tide {
namespace {

// Which pixels of an axis a result is the mean of. Weights of all results stand behind each other.
struct Taps {
  std::vector<std::int32_t> first, count;
  std::vector<std::size_t> place;
  std::vector<float> weights;
};

Taps taps_of(double begin, double extent, std::int64_t results, std::int64_t pixels) {
  Taps taps;
  const double step = extent / static_cast<double>(results), reach = std::max(step, 1.0);
  for (std::int64_t i = 0; i < results; ++i) {
    const double middle = begin + (static_cast<double>(i) + 0.5) * step;
    const auto low = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(middle - reach + 0.5)));
    const auto high = std::min(pixels, static_cast<std::int64_t>(std::floor(middle + reach + 0.5)));
    const std::int64_t from = std::clamp<std::int64_t>(low, 0, pixels - 1), to = std::max(from + 1, high);
    const std::size_t place = taps.weights.size();
    double sum = 0;
    for (std::int64_t p = from; p < to; ++p) {
      const double weight = std::max(0.0, 1 - std::abs((static_cast<double>(p) + 0.5 - middle) / reach));
      taps.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    if (sum <= 0) sum = 1;  // beside the image: black
    for (std::size_t w = place; w < taps.weights.size(); ++w)
      taps.weights[w] = static_cast<float>(taps.weights[w] / sum);
    taps.first.push_back(static_cast<std::int32_t>(from));
    taps.count.push_back(static_cast<std::int32_t>(to - from));
    taps.place.push_back(place);
  }
  return taps;
}

// One row of the result before columns are put together: sums over rows, which run over all columns at once.
void mix_rows(const Image& from, const Taps& rows, std::int64_t y, std::size_t begin, std::span<float> mixed) {
  const auto stride = static_cast<std::size_t>(from.width * from.channels);
  std::fill(mixed.begin(), mixed.end(), 0.0F);
  const auto row = static_cast<std::size_t>(y);
  for (std::int32_t t = 0; t < rows.count[row]; ++t) {
    const float weight = rows.weights[rows.place[row] + static_cast<std::size_t>(t)];
    const std::uint8_t* const pixels =
        from.pixels.data() + static_cast<std::size_t>(rows.first[row] + t) * stride + begin;
    for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] += weight * static_cast<float>(pixels[i]);
  }
}

std::uint8_t rounded(float value) { return static_cast<std::uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F)); }

template <std::size_t channels>
void mix_columns(std::span<const float> mixed, const Taps& columns, std::int32_t begin, std::uint8_t* to) {
  for (std::size_t x = 0; x < columns.first.size(); ++x) {
    const float* from = mixed.data() + static_cast<std::size_t>(columns.first[x] - begin) * channels;
    const float* const weights = columns.weights.data() + columns.place[x];
    std::array<float, channels> sums{};
    for (std::int32_t t = 0; t < columns.count[x]; ++t, from += channels)
      for (std::size_t c = 0; c < channels; ++c) sums[c] += weights[t] * from[c];
    for (const float sum : sums) *to++ = rounded(sum);
  }
}

std::int64_t nearest(double begin, double extent, std::int64_t result, std::int64_t results, std::int64_t pixels) {
  const double place = begin + (static_cast<double>(result) + 0.5) * extent / static_cast<double>(results);
  return std::clamp(static_cast<std::int64_t>(std::floor(place)), std::int64_t{0}, pixels - 1);
}

}  // namespace

Image resample(const Image& from, const ResampleBox& box, std::int64_t height, std::int64_t width) {
  const Taps rows = taps_of(box.top, box.height, height, from.height);
  const Taps columns = taps_of(box.left, box.width, width, from.width);
  Image result{height, width, from.channels, {}};
  result.pixels.resize(static_cast<std::size_t>(height * width * from.channels));
  // Columns outside of the box are not looked at.
  const std::int32_t begin = columns.first.front(), end = columns.first.back() + columns.count.back();
  std::vector<float> mixed(static_cast<std::size_t>((end - begin) * from.channels));
  for (std::int64_t y = 0; y < height; ++y) {
    mix_rows(from, rows, y, static_cast<std::size_t>(begin * from.channels), mixed);
    std::uint8_t* const to = result.pixels.data() + y * width * from.channels;
    if (from.channels == 3)
      mix_columns<3>(mixed, columns, begin, to);
    else
      mix_columns<1>(mixed, columns, begin, to);
  }
  return result;
}

Image resample_nearest(const Image& from, const ResampleBox& box, std::int64_t height, std::int64_t width) {
  Image result{height, width, from.channels, {}};
  result.pixels.resize(static_cast<std::size_t>(height * width * from.channels));
  std::uint8_t* to = result.pixels.data();
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t row = nearest(box.top, box.height, y, height, from.height);
      const std::int64_t column = nearest(box.left, box.width, x, width, from.width);
      const std::uint8_t* const pixel = from.pixels.data() + (row * from.width + column) * from.channels;
      to = std::copy_n(pixel, from.channels, to);
    }
  return result;
}

}  // namespace tide
