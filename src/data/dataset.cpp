#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace tide {
namespace {

class Synthetic final : public Dataset {
 public:
  explicit Synthetic(const SyntheticOptions& options) : options_(options), noise_(kNoise) {
    for (std::size_t i = 0; i < noise_.size(); i += 4) {
      const Random4 block = random_block(options_.seed, RandomUse::synthetic_data, 0, 0, 0, i / 4);
      for (std::size_t k = 0; k < 4; ++k) noise_[i + k] = 2 * to_unit(block[k]) - 1;
    }
  }
  [[nodiscard]] std::string name() const override { return "synthetic"; }
  [[nodiscard]] std::int64_t size() const override { return options_.size; }
  [[nodiscard]] Shape sample() const override { return options_.sample; }
  [[nodiscard]] std::int64_t classes() const override { return options_.classes; }
  [[nodiscard]] std::int64_t labels_per_sample() const override { return options_.labels_per_sample; }

  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    const auto sample = static_cast<std::uint64_t>(index);
    // Each sample is the noise from a place of its own on, so that a fast device need not wait.
    std::size_t at = random_block(options_.seed, RandomUse::synthetic_data, 2, 0, sample, 0)[0] % noise_.size();
    for (std::size_t i = 0; i < values.size(); at = 0) {
      const std::size_t count = std::min(values.size() - i, noise_.size() - at);
      std::copy_n(noise_.begin() + static_cast<std::ptrdiff_t>(at), count,
                  values.begin() + static_cast<std::ptrdiff_t>(i));
      i += count;
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const Random4 block = random_block(options_.seed, RandomUse::synthetic_data, 1, 0, sample, i);
      labels[i] = static_cast<std::int32_t>(block[0] % static_cast<std::uint32_t>(options_.classes));
    }
  }

 private:
  static constexpr std::size_t kNoise = std::size_t{1'000'003} * 4;  // no multiple of a sample's size

  SyntheticOptions options_;
  std::vector<float> noise_;
};

class Subset final : public Dataset {
 public:
  Subset(DatasetPtr whole, std::vector<std::int64_t> indices, std::string name)
      : whole_(std::move(whole)), indices_(std::move(indices)), name_(std::move(name)) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  [[nodiscard]] Shape sample() const override { return whole_->sample(); }
  [[nodiscard]] std::int64_t classes() const override { return whole_->classes(); }
  [[nodiscard]] std::int64_t labels_per_sample() const override { return whole_->labels_per_sample(); }
  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    whole_->read(of_whole(index), values, labels);
  }
  [[nodiscard]] bool varies() const override { return whole_->varies(); }
  [[nodiscard]] bool has_gaps() const override { return whole_->has_gaps(); }
  void expect(std::vector<std::int64_t> indices) const override {
    for (std::int64_t& index : indices) index = of_whole(index);
    whole_->expect(std::move(indices));
  }
  [[nodiscard]] std::vector<std::string> class_names() const override { return whole_->class_names(); }
  [[nodiscard]] std::optional<ImageReading> reading() const override { return whole_->reading(); }

 private:
  [[nodiscard]] std::int64_t of_whole(std::int64_t index) const {
    const std::int64_t pass = index / size();
    return indices_[static_cast<std::size_t>(index % size())] + pass * whole_->size();
  }

  DatasetPtr whole_;
  std::vector<std::int64_t> indices_;
  std::string name_;
};

}  // namespace

DatasetPtr synthetic(const SyntheticOptions& options) { return std::make_shared<Synthetic>(options); }

DatasetPtr subset(DatasetPtr whole, std::vector<std::int64_t> indices, std::string name) {
  return std::make_shared<Subset>(std::move(whole), std::move(indices), std::move(name));
}

SplitIndices split_indices(std::int64_t size, double validation_fraction, std::uint64_t seed) {
  if (!(validation_fraction >= 0 && validation_fraction < 1))
    throw Error("a validation split of {} is not possible; it is a fraction from 0 up to, but not including, 1",
                validation_fraction);
  // Epoch numbers count from 0, so this order is never one of theirs.
  std::vector<std::int64_t> order = shuffled(size, seed, ~std::uint64_t{0});
  const auto held_out = std::llround(validation_fraction * static_cast<double>(size));
  return {{order.begin() + held_out, order.end()}, {order.begin(), order.begin() + held_out}};
}

Split split(const DatasetPtr& whole, double validation_fraction, std::uint64_t seed) {
  SplitIndices parts = split_indices(whole->size(), validation_fraction, seed);
  if (parts.validation.empty()) return {subset(whole, std::move(parts.train), whole->name()), nullptr};
  return {subset(whole, std::move(parts.train), whole->name() + " (training part)"),
          subset(whole, std::move(parts.validation), whole->name() + " (held-out part)")};
}

std::vector<std::int64_t> shuffled(std::int64_t size, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    const Random4 block = random_block(seed, RandomUse::shuffle, epoch, 0, i, 0);
    const std::uint64_t bits = (std::uint64_t{block[0]} << 32) | block[1];
    std::swap(order[i - 1], order[bits % i]);
  }
  return order;
}

}  // namespace tide
