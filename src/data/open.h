// The data that a user names, whatever it is: folders of images, tar files, CIFAR-10, MNIST, numpy arrays.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "data/image_dataset.h"

namespace tide {

struct DataRequest {
  std::string path;  // a folder, a file, or "x.npy,y.npy"
  Shape sample;      // what the network takes
  std::int64_t classes = 0;
  bool number_labels = false;  // the network's labels are numbers, not classes
  // What is left out is what is usual for the kind of data (docs/data.md).
  std::optional<Crop> crop = {};
  std::optional<bool> flip = {};
  std::optional<Normalization> normalization = {};
  std::optional<double> kept = {};
  double jitter = 0, mixup = 0;
  bool altered = true;                      // false: training sees what validation sees
  double validation = kValidationFraction;  // of the whole, where the data has no such part of its own
  std::uint64_t seed = kSeed;
  OnBadFile on_bad_file = OnBadFile::refuse;
  std::string skip_words = ImageOptions().skip_words;
  std::function<void(const std::string&)> report = {};
  int threads = 0;           // that read ahead; 0: as many as there are cores, below: none
  std::int64_t ahead = 256;  // samples that they read ahead
};

[[nodiscard]] Split open_data(const DataRequest& request);

// How an image of its own is to be read for a network, as validation would: as a photo, or as MNIST's where it is grey,
// for what the request leaves out.
[[nodiscard]] ImageOptions image_options(const DataRequest& request);

}  // namespace tide
