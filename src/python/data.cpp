#include "data.h"

#include <algorithm>
#include <cmath>

namespace tide::python {
namespace {

struct DataWords {
  std::int64_t batch = 0;
  double validation = kValidationFraction;
  std::uint64_t seed = kSeed;
  std::int64_t synthetic_size = 0;
  std::string crop;
  std::optional<bool> flip;
  double jitter = 0, mixup = 0;
  bool plain = false;
  std::vector<double> mean, deviation;
  double resize = 0;
  std::int64_t workers = 0;
  std::string on_bad_file = "refuse";
};

std::array<double, 3> by_channel(const std::vector<double>& numbers, const char* word, bool above_zero) {
  if (numbers.size() != 1 && numbers.size() != 3) throw Error("{}: takes 1 or 3 numbers, not {}", word, numbers.size());
  std::array<double, 3> result{};
  for (std::size_t c = 0; c < 3; ++c) {
    result[c] = numbers[numbers.size() == 1 ? 0 : c];
    if (!std::isfinite(result[c]) || (above_zero && result[c] <= 0))
      throw Error("{}: {} is not a number{}", word, result[c], above_zero ? " above 0" : "");
  }
  return result;
}

void check_words(const DataWords& words, const Shape& sample) {
  constexpr std::int64_t kMostWorkers = 1024;
  if (words.batch < 1) throw Error("batch {} is not possible: a batch has at least 1 sample", words.batch);
  if (!(words.jitter >= 0 && words.jitter <= 1)) throw Error("jitter={} is not between 0 and 1", words.jitter);
  if (!(words.mixup >= 0 && words.mixup <= 1)) throw Error("mixup={} is not between 0 and 1", words.mixup);
  if (words.on_bad_file != "refuse" && words.on_bad_file != "skip")
    throw Error("on_bad_file='{}' is unknown; there is refuse and skip", words.on_bad_file);
  if (words.mean.empty() != words.deviation.empty()) throw Error("mean and deviation belong together; give both");
  if (words.resize != 0 && !(words.resize >= static_cast<double>(std::min(sample.height(), sample.width()))))
    throw Error("resize={} is smaller than the network's input of {}", words.resize, sample_text(sample));
  if (words.workers < -1 || words.workers > kMostWorkers)
    throw Error("workers={} is not possible; give 1 to {}, 0 for all cores, or -1 for none", words.workers,
                kMostWorkers);
  if (words.synthetic_size < 0) throw Error("synthetic_size={} is negative", words.synthetic_size);
}

DataRequest data_request_of(const Network& network, const std::string& name, const DataWords& words, bool numbers) {
  const Shape& sample = network.input_sample();
  DataRequest request{.path = name,
                      .sample = sample,
                      .classes = network.classes(),
                      .number_labels = words.mixup == 0 && numbers,
                      .flip = words.flip,
                      .jitter = words.jitter,
                      .mixup = words.mixup,
                      .altered = !words.plain,
                      .validation = words.validation,
                      .seed = words.seed,
                      .on_bad_file = words.on_bad_file == "skip" ? OnBadFile::skip : OnBadFile::refuse,
                      .threads = static_cast<int>(words.workers),
                      .ahead = std::max<std::int64_t>(256, checked_multiply(words.batch, 3))};
  if (!words.crop.empty()) request.crop = crop_from_name(words.crop);
  if (!words.mean.empty())
    request.normalization =
        Normalization{by_channel(words.mean, "mean", false), by_channel(words.deviation, "deviation", true)};
  if (words.resize != 0) request.kept = static_cast<double>(std::min(sample.height(), sample.width())) / words.resize;
  return request;
}

Data open_split(const NamedNetwork& named, const std::string& name, const DataWords& words) {
  const Network& network = *named.network();
  check_words(words, network.input_sample());
  Data data;
  if (name == "digits") {
    data.split = split(digits(), words.validation, words.seed);
    return data;
  }
  if (name == "synthetic") {
    data.split.train =
        synthetic({.sample = network.input_sample(),
                   .classes = std::max<std::int64_t>(network.classes(), 1),
                   .labels_per_sample = std::max<std::int64_t>(network.labels_of_data(), 1),
                   .size = words.synthetic_size > 0 ? words.synthetic_size : checked_multiply(words.batch, 16),
                   .seed = words.seed});
    return data;
  }
  bool numbers = false, gaps = true;
  for (const LossLabels& labels : loss_labels(network)) {
    numbers = numbers || labels.floats;
    gaps = gaps && (labels.floats || labels.counted);
  }
  if (words.mixup > 0 && !numbers)
    throw Error("mixup={} makes probabilities of labels; take network.adapt(soft_labels=True)", words.mixup);
  DataRequest request = data_request_of(network, name, words, numbers);
  request.report = [left_out = data.left_out](const std::string& what) {
    const std::lock_guard lock(left_out->mutex);
    left_out->files.push_back(what);
  };
  data.split = open_data(request);
  if (data.split.train->has_gaps() && !gaps)
    throw Error("{}: labels may be no class there; take network.adapt(gaps_in_labels=True)", name);
  return data;
}

}  // namespace

void bind_data(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<Data>(module, "Data", "A data set that the library reads: what is trained on, and what is held out.")
      .def_prop_ro("name", [](const Data& self) { return self.split.train->name(); })
      .def_prop_ro("size", [](const Data& self) { return self.split.train->size(); })
      .def_prop_ro("held_out",
                   [](const Data& self) { return self.split.validation ? self.split.validation->size() : 0; })
      .def_prop_ro("class_names", [](const Data& self) { return self.split.train->class_names(); })
      .def_prop_ro(
          "left_out",
          [](const Data& self) {
            const std::lock_guard lock(self.left_out->mutex);
            return self.left_out->files;
          },
          "Files that could not be read so far, one line each.");
  module.def(
      "open_data",
      [](const NamedNetwork& network, const std::string& name, std::int64_t batch, double validation,
         std::uint64_t seed, std::int64_t synthetic_size, const std::string& crop, std::optional<bool> flip,
         double jitter, double mixup, bool plain, const std::vector<double>& mean, const std::vector<double>& deviation,
         double resize, std::int64_t workers, const std::string& on_bad_file) {
        return open_split(network, name,
                          {batch, validation, seed, synthetic_size, crop, flip, jitter, mixup, plain, mean, deviation,
                           resize, workers, on_bad_file});
      },
      "network"_a, "name"_a, "batch"_a, "validation"_a = kValidationFraction, "seed"_a = kSeed, "synthetic_size"_a = 0,
      "crop"_a = "", "flip"_a = nb::none(), "jitter"_a = 0.0, "mixup"_a = 0.0, "plain"_a = false,
      "mean"_a = std::vector<double>(), "deviation"_a = std::vector<double>(), "resize"_a = 0.0, "workers"_a = 0,
      "on_bad_file"_a = "refuse");
}

}  // namespace tide::python
