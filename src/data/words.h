// What people say of their data, in the same words on the command line and in Python.
#pragma once

#include "data/open.h"

namespace tide {

// 0 and empty: as usual for the data (docs/data.md).
struct DataWords {
  double validation = kValidationFraction;
  std::uint64_t seed = kSeed;
  std::int64_t synthetic_size = 0;
  std::string crop;
  std::optional<bool> flip;
  bool plain = false;
  double jitter = 0, mixup = 0, resize = 0;
  std::vector<double> mean, deviation;
  std::int64_t workers = 0;
  std::string on_bad_file = "refuse";
};

// How errors write a word: --on-bad-file skip, or on_bad_file='skip'.
enum class WordStyle : std::uint8_t { options, arguments };

// Throws an Error that names the word. The caller adds the path and what the network takes beside its sample.
[[nodiscard]] DataRequest request_of(const DataWords& words, const Shape& sample, std::int64_t batch, WordStyle style);

}  // namespace tide
