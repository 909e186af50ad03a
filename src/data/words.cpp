#include "data/words.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"

namespace tide {
namespace {

class Reader {
 public:
  Reader(const DataWords& words, const Shape& sample, std::int64_t batch, WordStyle style)
      : words_(words), shorter_(static_cast<double>(std::min(sample.height(), sample.width()))), style_(style) {
    request_.sample = sample;
    request_.ahead = std::max<std::int64_t>(256, checked_multiply(batch, 3));
  }

  DataRequest read() {
    check();
    if (!words_.crop.empty()) request_.crop = crop_from_name(words_.crop);
    request_.flip = words_.flip;
    request_.jitter = words_.jitter;
    request_.mixup = words_.mixup;
    request_.altered = !words_.plain;
    request_.validation = words_.validation;
    request_.seed = words_.seed;
    request_.on_bad_file = words_.on_bad_file == "skip" ? OnBadFile::skip : OnBadFile::refuse;
    request_.skip_words = style_ == WordStyle::options ? "--on-bad-file skip" : "on_bad_file='skip'";
    request_.threads = static_cast<int>(words_.workers);
    if (!words_.mean.empty())
      request_.normalization =
          Normalization{by_channel("mean", words_.mean, false), by_channel("deviation", words_.deviation, true)};
    if (words_.resize != 0) request_.kept = shorter_ / words_.resize;
    return std::move(request_);
  }

 private:
  [[nodiscard]] std::string name(std::string word) const {
    if (style_ == WordStyle::arguments) return word;
    std::replace(word.begin(), word.end(), '_', '-');
    return "--" + word;
  }
  template <typename Value>
  [[nodiscard]] std::string said(const char* word, const Value& value) const {
    return fmt::format("{}{}{}", name(word), style_ == WordStyle::options ? ' ' : '=', value);
  }

  void check() const {
    constexpr std::int64_t kMostWorkers = 1024;
    for (const auto& [word, value] : {std::pair{"jitter", words_.jitter}, std::pair{"mixup", words_.mixup}})
      if (!(value >= 0 && value <= 1)) throw Error("{} is not between 0 and 1", said(word, value));
    if (words_.on_bad_file != "refuse" && words_.on_bad_file != "skip")
      throw Error("{} is unknown; there is refuse and skip",
                  said("on_bad_file", fmt::format("'{}'", words_.on_bad_file)));
    if (words_.mean.empty() != words_.deviation.empty())
      throw Error("{} and {} belong together; give both", name("mean"), name("deviation"));
    if (words_.resize != 0 && !(words_.resize >= shorter_))
      throw Error("{} is smaller than the network's input of {}", said("resize", words_.resize),
                  sample_text(request_.sample));
    if (words_.workers < -1 || words_.workers > kMostWorkers)
      throw Error("{} is not possible; give 1 to {}, 0 for all cores, or -1 for none", said("workers", words_.workers),
                  kMostWorkers);
    if (words_.synthetic_size < 0) throw Error("{} is negative", said("synthetic_size", words_.synthetic_size));
  }

  [[nodiscard]] std::array<double, 3> by_channel(const char* word, const std::vector<double>& numbers,
                                                 bool above_zero) const {
    if (numbers.size() != 1 && numbers.size() != 3)
      throw Error("{} takes 1 or 3 numbers, not {}", name(word), numbers.size());
    std::array<double, 3> result{};
    for (std::size_t c = 0; c < 3; ++c) {
      result[c] = numbers[numbers.size() == 1 ? 0 : c];
      if (!std::isfinite(result[c]) || (above_zero && result[c] <= 0))
        throw Error("{} is not a number{}", said(word, result[c]), above_zero ? " above 0" : "");
    }
    return result;
  }

  const DataWords& words_;
  double shorter_;
  WordStyle style_;
  DataRequest request_;
};

}  // namespace

DataRequest request_of(const DataWords& words, const Shape& sample, std::int64_t batch, WordStyle style) {
  if (batch < 1) throw Error("batch {} is not possible: a batch has at least 1 sample", batch);
  return Reader(words, sample, batch, style).read();
}

}  // namespace tide
