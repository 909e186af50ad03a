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
  DataRequest request = request_of(*this, network.input_sample(), batch, WordStyle::options);
  request.path = name;
  request.classes = network.classes();
  request.number_labels = mixup == 0 && takes_numbers(network);
  request.report = [](const std::string& what) { fmt::print(stderr, "tide: left out: {}\n", what); };
  if (reading && !request.normalization) request.normalization = reading->normalization;
  if (reading && !request.kept) request.kept = reading->kept;
  return request;
}

ImageOptions DataArguments::one_image(const Network& network) const { return image_options(request(network, 1)); }

Split DataArguments::load(const Network& network, std::int64_t batch) const {
  const DataRequest asked = request(network, batch);  // what is said wrongly is wrong for any data
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
  Split data = open_data(asked);
  check_fits(network, *data.train);
  if (data.validation) check_fits(network, *data.validation);
  return data;
}

}  // namespace tide
