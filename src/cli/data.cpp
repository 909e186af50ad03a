#include "cli/data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "network/kind.h"

namespace tide {
namespace {

bool digits_fit(const Network& network, const Dataset& data) {
  return data.sample() == network.input_sample() && network.classes() >= data.classes() &&
         network.labels_of_data() == 1;
}

std::array<double, 3> three(const std::vector<double>& numbers, const char* option, bool above_zero) {
  if (numbers.size() != 1 && numbers.size() != 3)
    throw Error("{} takes 1 or 3 numbers, not {}", option, numbers.size());
  std::array<double, 3> result{};
  for (std::size_t c = 0; c < 3; ++c) {
    result[c] = numbers[numbers.size() == 1 ? 0 : c];
    if (!std::isfinite(result[c]) || (above_zero && result[c] <= 0))
      throw Error("{} {} is not a number{}", option, result[c], above_zero ? " above 0" : "");
  }
  return result;
}

// Whether a loss of the network compares with numbers.
bool takes_numbers(const Network& network) {
  for (const LossLabels& labels : loss_labels(network))
    if (labels.floats) return true;
  return false;
}

void check_fits(const Network& network, const Dataset& data) {
  if (data.sample() != network.input_sample() || data.labels_per_sample() != network.labels_of_data())
    throw Error("{} takes {} with {} labels, {} has {} with {}; name a network or --input that fits", network.name,
                sample_text(network.input_sample()), network.labels_of_data(), data.name(), sample_text(data.sample()),
                data.labels_per_sample());
  if (data.classes() > network.classes())
    throw Error("{} has {} classes, {} has {}; name a network with as many (@{})", data.name(), data.classes(),
                network.name, network.classes(), data.classes());
}

}  // namespace

void DataArguments::add_to(CLI::App& app) {
  app.add_option(
      "--data", name,
      "A folder, a .tar file, two arrays x.npy,y.npy (docs/data.md), digits (embedded) or synthetic; without "
      "it, digits where the network fits them");
  app.add_option("--validation", validation, "Fraction held out for evaluation, where the data has no such part")
      ->capture_default_str();
  app.add_option("--synthetic-size", synthetic_size, "Samples of the synthetic data; 0: sixteen batches");
  app.add_option("--seed", seed, "Of parameters, shuffling, dropout, alterations of images and the split")
      ->capture_default_str();
  constexpr const char* kImages = "Images";
  app.add_option("--crop", crop, "How training sees images: resized, padded or none; as usual for the data otherwise")
      ->group(kImages);
  app.add_flag("--flip,!--no-flip", flip, "Turn every other image round, left and right")->group(kImages);
  app.add_option("--jitter", jitter, "Change brightness, contrast and saturation by up to this share")->group(kImages);
  app.add_option("--mixup", mixup, "Mix samples with others, by shares of Beta(x, x), x up to 1")->group(kImages);
  app.add_flag("--plain", plain, "Training sees images as validation does")->group(kImages);
  app.add_option("--mean", mean, "What is taken from pixels between 0 and 1: 1 number or 3")
      ->delimiter(',')
      ->group(kImages);
  app.add_option("--deviation", deviation, "What they are divided by then")->delimiter(',')->group(kImages);
  app.add_option("--resize", resize, "Validation sees the middle of an image whose shorter side has so many pixels")
      ->group(kImages);
  app.add_option("--workers", workers, "Threads that read ahead; 0: as many as there are cores; -1: none")
      ->group(kImages);
  app.add_option("--on-bad-file", on_bad_file, "What to do with a file that cannot be read: refuse or skip")
      ->capture_default_str()
      ->group(kImages);
}

DataRequest DataArguments::request(const Network& network, std::int64_t batch) const {
  if (!(jitter >= 0 && jitter <= 1)) throw Error("--jitter {} is not between 0 and 1", jitter);
  if (!(mixup >= 0 && mixup <= 1)) throw Error("--mixup {} is not between 0 and 1", mixup);
  if (on_bad_file != "refuse" && on_bad_file != "skip")
    throw Error("--on-bad-file '{}' is unknown; there is refuse and skip", on_bad_file);
  if (mean.empty() != deviation.empty()) throw Error("--mean and --deviation belong together; give both");
  const Shape& sample = network.input_sample();
  if (resize != 0 && !(resize >= static_cast<double>(std::min(sample.height(), sample.width()))))
    throw Error("--resize {} is smaller than the network's input of {}", resize, sample_text(sample));
  DataRequest request{.path = name,
                      .sample = sample,
                      .classes = network.classes(),
                      .number_labels = mixup == 0 && takes_numbers(network),
                      .flip = flip,
                      .jitter = jitter,
                      .mixup = mixup,
                      .altered = !plain,
                      .validation = validation,
                      .seed = seed,
                      .on_bad_file = on_bad_file == "skip" ? OnBadFile::skip : OnBadFile::refuse,
                      .report = [](const std::string& what) { fmt::print(stderr, "tide: left out: {}\n", what); },
                      .threads = workers,
                      .ahead = std::max<std::int64_t>(256, checked_multiply(batch, 3))};
  if (!crop.empty()) request.crop = crop_from_name(crop);
  if (!mean.empty())
    request.normalization = Normalization{three(mean, "--mean", false), three(deviation, "--deviation", true)};
  if (resize != 0) request.kept = static_cast<double>(std::min(sample.height(), sample.width())) / resize;
  if (reading && !request.normalization) request.normalization = reading->normalization;
  if (reading && !request.kept) request.kept = reading->kept;
  return request;
}

ImageOptions DataArguments::one_image(const Network& network) const { return image_options(request(network, 1)); }

Split DataArguments::load(const Network& network, std::int64_t batch) const {
  if (batch < 1) throw Error("batch {} is not possible: a batch has at least 1 sample", batch);
  if (name.empty() || name == "digits" || name == "synthetic") {
    const DatasetPtr data = digits();
    if (name == "synthetic" || (name.empty() && !digits_fit(network, *data))) {
      const std::int64_t size = synthetic_size > 0 ? synthetic_size : checked_multiply(batch, 16);
      return {synthetic({.sample = network.input_sample(),
                         .classes = std::max<std::int64_t>(network.classes(), 1),
                         .labels_per_sample = std::max<std::int64_t>(network.labels_of_data(), 1),
                         .size = size,
                         .seed = seed}),
              nullptr};  // nothing to hold out: there is nothing to learn
    }
    if (!digits_fit(network, *data))
      throw Error(
          "{} takes {} and has {} classes, the digits are {} with {}; use --data synthetic, or --input and @N to fit "
          "them",
          network.name, sample_text(network.input_sample()), network.classes(), sample_text(data->sample()),
          data->classes());
    return split(data, validation, seed);
  }
  Split data = open_data(request(network, batch));
  check_fits(network, *data.train);
  if (data.validation) check_fits(network, *data.validation);
  return data;
}

}  // namespace tide
