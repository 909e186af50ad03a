// Samples to train on. A sample is written straight into the step's input, channels last.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/shape.h"

namespace tide {

// Numbers from 0 to 1 become (number - mean) / deviation, by channel.
struct Normalization {
  std::array<double, 3> mean{0, 0, 0}, deviation{1, 1, 1};
};

// How validation sees an image: the middle of it, so much of its shorter side, as such numbers.
struct ImageReading {
  Normalization normalization = {};
  double kept = 1;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  [[nodiscard]] virtual Shape sample() const = 0;  // batch 1
  [[nodiscard]] virtual std::int64_t classes() const = 0;
  [[nodiscard]] virtual std::int64_t labels_per_sample() const = 0;
  // May be called from several threads at once. `labels` may have a place more than labels_per_sample(), for others.
  virtual void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const = 0;

  // Whether a sample differs from pass to pass over the data. read() then takes index + pass * size().
  [[nodiscard]] virtual bool varies() const { return false; }
  // Whether labels may be none of the classes, as of pixels that nobody has looked at.
  [[nodiscard]] virtual bool has_gaps() const { return false; }
  // What will be read next, in this order, for those who read ahead. Others do not care.
  virtual void expect(std::vector<std::int64_t> /*indices*/) const {}
  // By class; empty where they have none.
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }
  // Where samples are images.
  [[nodiscard]] virtual std::optional<ImageReading> reading() const { return std::nullopt; }
};

// Of all that is random, where nobody names another.
inline constexpr std::uint64_t kSeed = 1;

using DatasetPtr = std::shared_ptr<const Dataset>;

// The handwritten digits that come with the program: 1797 grey images of 8x8 (data/README.md).
[[nodiscard]] DatasetPtr digits();

// Reproducible noise of any shape, for speed and memory runs. Labels are random too, so
// there is nothing to learn but the noise itself.
struct SyntheticOptions {
  Shape sample;
  std::int64_t classes = 1000;
  std::int64_t labels_per_sample = 1;
  std::int64_t size = 1024;
  std::uint64_t seed = kSeed;
};
[[nodiscard]] DatasetPtr synthetic(const SyntheticOptions& options);

// A part of a data set.
[[nodiscard]] DatasetPtr subset(DatasetPtr whole, std::vector<std::int64_t> indices, std::string name);

// Splits off a validation set: the same samples for the same seed, whatever else changes.
struct Split {
  DatasetPtr train, validation;  // validation: null where nothing is held out
};
inline constexpr double kValidationFraction = 0.2;
[[nodiscard]] Split split(const DatasetPtr& whole, double validation_fraction = kValidationFraction,
                          std::uint64_t seed = kSeed);

// The same split as numbers of samples.
struct SplitIndices {
  std::vector<std::int64_t> train, validation;
};
[[nodiscard]] SplitIndices split_indices(std::int64_t size, double validation_fraction, std::uint64_t seed);

// 0..size-1 in an order that depends on seed and epoch alone.
[[nodiscard]] std::vector<std::int64_t> shuffled(std::int64_t size, std::uint64_t seed, std::uint64_t epoch);

}  // namespace tide
