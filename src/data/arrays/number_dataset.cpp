#include "data/arrays/number_dataset.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace tide {
namespace {

class NumberDataset final : public Dataset {
 public:
  NumberDataset(NumberArray x, NumberArray y, const Shape& sample, bool number_labels)
      : x_(std::move(x)), y_(std::move(y)), sample_(sample), number_labels_(number_labels) {
    if (x_.shape.empty() || y_.shape.empty() || x_.shape[0] != y_.shape[0])
      throw Error("{} has {} samples, but {} has {}; name two arrays that belong together", x_.name,
                  x_.shape.empty() ? 0 : x_.shape[0], y_.name, y_.shape.empty() ? 0 : y_.shape[0]);
    if (x_.shape[0] < 1) throw Error("{}: has no samples", x_.name);
    const std::vector<std::int64_t> own(x_.shape.begin() + 1, x_.shape.end());
    const std::vector<std::int64_t> wanted(sample.extents().begin() + 1, sample.extents().end());
    if (own != wanted)
      throw Error("{}: its samples are {}, the network takes {}", x_.name, fmt::join(own, "x"), sample_text(sample));
    labels_ = y_.elements() / y_.shape[0];
    if (!number_labels_) find_classes();
  }

  [[nodiscard]] std::string name() const override { return x_.name; }
  [[nodiscard]] std::int64_t size() const override { return x_.shape[0]; }
  [[nodiscard]] Shape sample() const override { return sample_; }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  [[nodiscard]] std::int64_t labels_per_sample() const override { return labels_; }
  [[nodiscard]] bool has_gaps() const override { return has_gaps_; }

  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    const std::int64_t channels = sample_.channels(), positions = sample_.positions();
    const std::int64_t begin = index * channels * positions;
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t p = 0; p < positions; ++p)
        values[static_cast<std::size_t>(p * channels + c)] = static_cast<float>(x_.at(begin + c * positions + p));
    for (std::int64_t i = 0; i < labels_; ++i) {
      const double value = y_.at(index * labels_ + i);
      labels[static_cast<std::size_t>(i)] = number_labels_   ? std::bit_cast<std::int32_t>(static_cast<float>(value))
                                            : is_none(value) ? -1
                                                             : static_cast<std::int32_t>(value);
    }
  }

 private:
  // Where a sample has many labels, as of pixels: -1, PyTorch's -100, and 255 of bytes.
  [[nodiscard]] bool is_none(double value) const {
    return labels_ > 1 && (value == -1 || value == -100 || (value == 255 && y_.type == NumberType::u8));
  }
  void find_classes() {
    for (std::int64_t i = 0; i < y_.elements(); ++i) {
      const double value = y_.at(i);
      if (is_none(value)) {
        has_gaps_ = true;
        continue;
      }
      if (value != std::floor(value) || !(value >= 0 && value <= 1e9))
        throw Error("{}: {} is not the number of a class; classes count from 0{}", y_.name, value,
                    labels_ > 1 ? ", and -1 is none" : "");
      classes_ = std::max(classes_, static_cast<std::int64_t>(value) + 1);
    }
  }

  NumberArray x_, y_;
  Shape sample_;
  bool number_labels_, has_gaps_ = false;
  std::int64_t labels_ = 1, classes_ = 0;
};

}  // namespace

DatasetPtr number_dataset(NumberArray x, NumberArray y, const Shape& sample, bool number_labels) {
  return std::make_shared<NumberDataset>(std::move(x), std::move(y), sample, number_labels);
}

}  // namespace tide
