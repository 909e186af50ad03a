// Images as samples: made as large as the network's input, altered for training, as normalized numbers.
#pragma once

#include <functional>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/images/source.h"

namespace tide {

enum class OnBadFile : std::uint8_t { refuse, skip };

struct ImageOptions {
  Shape sample;              // what the network takes: 1 or 3 channels, height and width
  std::int64_t classes = 0;  // 0: as many as the source has; masks need them
  Normalization normalization = {};
  double kept = 224.0 / 256;       // share of the shorter side that is seen where nothing is altered
  Augmentation augmentation = {};  // of training
  bool training = false;           // otherwise images are as they are
  double mixup = 0;  // above 0: in training samples are mixed with another, by shares of Beta(mixup, mixup)
  OnBadFile on_bad_file = OnBadFile::refuse;
  std::string skip_words = "--on-bad-file skip";  // how errors say what leaves such files out
  // Told of a file that is left out, once for each, on any thread.
  std::function<void(const std::string&)> report = {};
};

// Where mixup is above 0, labels are the probabilities of all classes, floats in their 32 bits.
//
// A file that cannot be read is an Error that names it; or with OnBadFile::skip the next one that can is taken for it.
[[nodiscard]] DatasetPtr image_dataset(ImageSourcePtr source, const ImageOptions& options);

// The one image, as validation sees it.
void read_image(const StoredImage& image, const ImageOptions& options, std::span<float> values);

}  // namespace tide
