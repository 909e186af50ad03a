#include "cli/data.h"

#include <algorithm>

namespace tide {

void DataArguments::add_to(CLI::App& app) {
  app.add_option("--data", name, "digits (embedded) or synthetic; without it, digits where the network fits them");
  app.add_option("--validation", validation, "Fraction held out for evaluation")->capture_default_str();
  app.add_option("--synthetic-size", synthetic_size, "Samples of the synthetic data; 0: sixteen batches");
  app.add_option("--seed", seed, "Of parameters, shuffling, dropout and the split")->capture_default_str();
}

Split DataArguments::load(const Network& network, std::int64_t batch) const {
  if (batch < 1) throw Error("batch {} is not possible: a batch has at least 1 sample", batch);
  DatasetPtr data = digits();
  const auto fits = [&] {
    return data->sample() == network.input_sample() && network.classes() >= data->classes() &&
           network.labels_per_sample() == 1;
  };
  if (name == "synthetic" || (name.empty() && !fits())) {
    const std::int64_t size = synthetic_size > 0 ? synthetic_size : checked_multiply(batch, 16);
    data = synthetic({.sample = network.input_sample(),
                      .classes = std::max<std::int64_t>(network.classes(), 1),
                      .labels_per_sample = std::max<std::int64_t>(network.labels_per_sample(), 1),
                      .size = size,
                      .seed = seed});
    return {data, nullptr};  // nothing to hold out: there is nothing to learn
  }
  if (!name.empty() && name != "digits") throw Error("unknown data '{}'; there is digits and synthetic", name);
  if (!fits())
    throw Error(
        "{} takes {} and has {} classes, the digits are {} with {}; use --data synthetic, or --input and @N to fit "
        "them",
        network.name, sample_text(network.input_sample()), network.classes(), sample_text(data->sample()),
        data->classes());
  return split(data, validation, seed);
}

}  // namespace tide
