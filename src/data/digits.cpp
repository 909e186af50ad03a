#include <cstring>

#include "data/dataset.h"
#include "data/embedded.h"

namespace tide {
namespace {

// data/digits.bin: "TIDEDIG1", then count, height, width, classes as little-endian u32,
// then the pixels (0..16) of all images, then one label byte per image.
class Digits final : public Dataset {
 public:
  Digits() {
    const std::span<const unsigned char> file = embedded_digits();
    const auto word = [&](std::size_t i) {
      const unsigned char* p = file.data() + 8 + 4 * i;
      return std::int64_t{p[0]} | std::int64_t{p[1]} << 8 | std::int64_t{p[2]} << 16 | std::int64_t{p[3]} << 24;
    };
    if (file.size() < 24 || std::memcmp(file.data(), "TIDEDIG1", 8) != 0)
      throw Error("the embedded digits are damaged; build the program again from a clean checkout");
    count_ = word(0);
    sample_ = {1, 1, word(1), word(2)};
    classes_ = word(3);
    const std::int64_t pixels = checked_multiply(count_, sample_.per_sample());
    if (static_cast<std::int64_t>(file.size()) != 24 + pixels + count_)
      throw Error("the embedded digits have {} bytes instead of {}; build the program again", file.size(),
                  24 + pixels + count_);
    pixels_ = file.subspan(24, static_cast<std::size_t>(pixels));
    labels_ = file.subspan(24 + static_cast<std::size_t>(pixels));
  }
  [[nodiscard]] std::string name() const override { return "digits"; }
  [[nodiscard]] std::int64_t size() const override { return count_; }
  [[nodiscard]] Shape sample() const override { return sample_; }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  [[nodiscard]] std::int64_t labels_per_sample() const override { return 1; }
  [[nodiscard]] std::optional<ImageReading> reading() const override {
    return ImageReading{{{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}}, 1};
  }
  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    const auto at = static_cast<std::size_t>(index);
    const auto image = pixels_.subspan(at * values.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(image[i]) / 8 - 1;
    labels[0] = labels_[at];
  }

 private:
  std::int64_t count_ = 0, classes_ = 0;
  Shape sample_;
  std::span<const unsigned char> pixels_, labels_;
};

}  // namespace

DatasetPtr digits() { return std::make_shared<Digits>(); }

}  // namespace tide
