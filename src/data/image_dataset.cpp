#include "data/image_dataset.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/random.h"

namespace tide {
namespace {

// A box, which may go beyond the image, as whole pixels of it.
PixelBox pixels_of(const ResampleBox& box, const ImageExtents& extents) {
  const auto inside = [](double value, std::int64_t most) {
    return std::clamp(static_cast<std::int64_t>(value), std::int64_t{0}, most);
  };
  PixelBox pixels;
  pixels.top = std::min(inside(std::floor(box.top), extents.height), extents.height - 1);
  pixels.left = std::min(inside(std::floor(box.left), extents.width), extents.width - 1);
  pixels.height = std::max<std::int64_t>(1, inside(std::ceil(box.top + box.height), extents.height) - pixels.top);
  pixels.width = std::max<std::int64_t>(1, inside(std::ceil(box.left + box.width), extents.width) - pixels.left);
  return pixels;
}

Image resampled(const StoredImage& stored, const ResampleBox& box, const ImageExtents& extents, const Shape& sample) {
  const DecodeOptions options{
      .channels = sample.channels(), .least_height = sample.height(), .least_width = sample.width()};
  const DecodedPart part = part_of(stored, pixels_of(box, extents), options);
  const auto shrunk = static_cast<double>(part.shrunk);
  const ResampleBox within{box.top / shrunk - static_cast<double>(part.top),
                           box.left / shrunk - static_cast<double>(part.left), box.height / shrunk, box.width / shrunk};
  return resample(part.image, within, sample.height(), sample.width());
}

// A share of Beta(a, a): as of two Gamma numbers (Johnk's way, for a up to 1; larger ones are taken as 1).
double beta_share(double a, std::uint64_t seed, std::uint64_t sample, std::uint64_t pass) {
  a = std::min(a, 1.0);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Random4 block = random_block(seed, RandomUse::augmentation, pass, 1, sample, i);
    const double u = std::pow(static_cast<double>(to_unit(block[0])), 1 / a);
    const double v = std::pow(static_cast<double>(to_unit(block[1])), 1 / a);
    if (u + v > 0 && u + v <= 1) return u / (u + v);
  }
  return 0.5;
}

class ImageDataset final : public Dataset {
 public:
  ImageDataset(ImageSourcePtr source, const ImageOptions& options)
      : source_(std::move(source)),
        options_(options),
        classes_(options.classes > 0 ? options.classes : source_->classes()) {
    const Shape& sample = options_.sample;
    if (sample.rank() != 4 || (sample.channels() != 1 && sample.channels() != 3))
      throw Error("{} has images, but the network takes {}; images are 1 or 3 channels x height x width",
                  source_->name(), sample_text(sample));
    if (soft() && source_->has_masks()) throw Error("--mixup mixes classes of whole images, not masks; leave it out");
  }

  [[nodiscard]] std::string name() const override { return source_->name(); }
  [[nodiscard]] std::int64_t size() const override { return source_->size(); }
  [[nodiscard]] Shape sample() const override { return options_.sample; }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  [[nodiscard]] std::int64_t labels_per_sample() const override {
    return source_->has_masks() ? options_.sample.positions() : soft() ? classes_ : 1;
  }
  [[nodiscard]] bool varies() const override { return options_.training; }
  [[nodiscard]] bool has_gaps() const override { return source_->has_masks(); }
  [[nodiscard]] std::vector<std::string> class_names() const override { return source_->class_names(); }
  [[nodiscard]] std::optional<ImageReading> reading() const override {
    return ImageReading{options_.normalization, options_.kept};
  }

  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    const auto pass = static_cast<std::uint64_t>(index / size());
    const std::int64_t sample = index % size();
    if (!mixes()) {
      const std::int64_t taken = read_one(sample, pass, values, labels);
      if (soft()) {
        std::fill_n(labels.begin(), classes_, std::bit_cast<std::int32_t>(0.0F));
        labels[static_cast<std::size_t>(source_->label(taken))] = std::bit_cast<std::int32_t>(1.0F);
      } else if (!source_->has_masks()) {
        labels[0] = source_->label(taken);
      }
      return;
    }
    const std::uint64_t seed = options_.augmentation.seed;
    const auto key = static_cast<std::uint64_t>(sample);
    const double share = beta_share(options_.mixup, seed, key, pass);
    const Random4 block = random_block(seed, RandomUse::augmentation, pass, 2, key, 0);
    const auto other =
        static_cast<std::int64_t>((std::uint64_t{block[0]} << 32 | block[1]) % static_cast<std::uint64_t>(size()));
    std::vector<float> second(values.size());
    const std::int64_t first_taken = read_one(sample, pass, values, labels);
    const std::int64_t second_taken = read_one(other, pass, second, labels);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(share) * values[i] + static_cast<float>(1 - share) * second[i];
    std::fill_n(labels.begin(), classes_, std::bit_cast<std::int32_t>(0.0F));
    const auto add = [&](std::int64_t taken, double part) {
      std::int32_t& label = labels[static_cast<std::size_t>(source_->label(taken))];
      label = std::bit_cast<std::int32_t>(std::bit_cast<float>(label) + static_cast<float>(part));
    };
    add(first_taken, share);
    add(second_taken, 1 - share);
  }

 private:
  [[nodiscard]] bool soft() const { return options_.mixup > 0; }
  [[nodiscard]] bool mixes() const { return soft() && options_.training; }

  // Which sample was read.
  std::int64_t read_one(std::int64_t sample, std::uint64_t pass, std::span<float> values,
                        std::span<std::int32_t> labels) const {
    for (std::int64_t tried = 0;; ++tried) {
      const std::int64_t index = (sample + tried) % size();
      try {
        read_sample(index, pass, values, labels);
        return index;
      } catch (const Error& error) {
        if (options_.on_bad_file == OnBadFile::refuse)
          throw Error("{}; mend or remove it, or leave such files out with {}", error.what(), options_.skip_words);
        report(index, error.what());
        if (tried + 1 == size()) throw Error("{}: none of its files can be read", source_->name());
      }
    }
  }

  void report(std::int64_t index, const char* what) const {
    const std::lock_guard lock(mutex_);
    if (reported_.insert(index).second && options_.report) options_.report(what);
  }

  void read_sample(std::int64_t index, std::uint64_t pass, std::span<float> values,
                   std::span<std::int32_t> labels) const {
    const StoredImage stored = source_->image(index);
    const ImageExtents extents = extents_of(stored);
    const Shape& sample = options_.sample;
    Alteration alteration;
    if (options_.training)
      alteration = draw(options_.augmentation, static_cast<std::uint64_t>(index), pass, extents.height, extents.width,
                        sample.height(), sample.width());
    else
      alteration.box = middle_of(extents.height, extents.width, sample.height(), sample.width(), options_.kept);
    Image image = resampled(stored, alteration.box, extents, sample);
    if (alteration.flipped) flip_columns(image);
    change_colours(image, alteration);
    normalize(image, options_.normalization, values);
    if (source_->has_masks()) read_mask(index, alteration, extents, labels);
  }

  void read_mask(std::int64_t index, const Alteration& alteration, const ImageExtents& extents,
                 std::span<std::int32_t> labels) const {
    const StoredImage stored = source_->mask(index);
    Image mask = decode_mask(stored.bytes, stored.name);
    if (mask.height != extents.height || mask.width != extents.width)
      throw Error("{}: has {}x{} pixels, its image {}x{}", stored.name, mask.width, mask.height, extents.width,
                  extents.height);
    const ResampleBox& box = alteration.box;
    Image seen = resample_nearest(mask, box, options_.sample.height(), options_.sample.width());
    if (alteration.flipped) flip_columns(seen);
    const std::int64_t width = seen.width;
    for (std::size_t i = 0; i < seen.pixels.size(); ++i) {
      const std::uint8_t label = seen.pixels[i];
      if (label != kNoClass && label >= classes_)
        throw Error("{}: has the class {}, the network {}; classes count from 0, and {} is none", stored.name, label,
                    classes_, kNoClass);
      // Outside of the image there is no class.
      const auto y = static_cast<double>(static_cast<std::int64_t>(i) / width) + 0.5;
      const double x = static_cast<double>(static_cast<std::int64_t>(i) % width) + 0.5;
      const double at_y = box.top + y * box.height / static_cast<double>(seen.height);
      const double column = alteration.flipped ? static_cast<double>(width) - x : x;
      const double at_x = box.left + column * box.width / static_cast<double>(width);
      const bool outside = at_y < 0 || at_x < 0 || at_y >= static_cast<double>(extents.height) ||
                           at_x >= static_cast<double>(extents.width);
      labels[i] = label == kNoClass || outside ? -1 : label;
    }
  }

  ImageSourcePtr source_;
  ImageOptions options_;
  std::int64_t classes_;
  mutable std::mutex mutex_;
  mutable std::set<std::int64_t> reported_;
};

}  // namespace

DatasetPtr image_dataset(ImageSourcePtr source, const ImageOptions& options) {
  return std::make_shared<ImageDataset>(std::move(source), options);
}

void read_image(const StoredImage& image, const ImageOptions& options, std::span<float> values) {
  const ImageExtents extents = extents_of(image);
  const Shape& sample = options.sample;
  const ResampleBox box = middle_of(extents.height, extents.width, sample.height(), sample.width(), options.kept);
  normalize(resampled(image, box, extents, sample), options.normalization, values);
}

}  // namespace tide
