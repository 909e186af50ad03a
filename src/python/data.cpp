#include "data.h"

#include <algorithm>

namespace tide::python {
namespace {

Data open_split(const NamedNetwork& named, const std::string& name, std::int64_t batch, const DataWords& words) {
  const Network& network = *named.network();
  DataRequest request = request_of(words, network.input_sample(), batch, WordStyle::arguments);
  Data data;
  if (name == "digits") {
    data.split = split(digits(), words.validation, words.seed);
    return data;
  }
  if (name == "synthetic") {
    data.split.train = synthetic({.sample = network.input_sample(),
                                  .classes = std::max<std::int64_t>(network.classes(), 1),
                                  .labels_per_sample = std::max<std::int64_t>(network.labels_of_data(), 1),
                                  .size = words.synthetic_size > 0 ? words.synthetic_size : checked_multiply(batch, 16),
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
  request.path = name;
  request.classes = network.classes();
  request.number_labels = words.mixup == 0 && numbers;
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
        return open_split(network, name, batch,
                          {validation, seed, synthetic_size, crop, flip, plain, jitter, mixup, resize, mean, deviation,
                           workers, on_bad_file});
      },
      "network"_a, "name"_a, "batch"_a, "validation"_a = kValidationFraction, "seed"_a = kSeed, "synthetic_size"_a = 0,
      "crop"_a = "", "flip"_a = nb::none(), "jitter"_a = 0.0, "mixup"_a = 0.0, "plain"_a = false,
      "mean"_a = std::vector<double>(), "deviation"_a = std::vector<double>(), "resize"_a = 0.0, "workers"_a = 0,
      "on_bad_file"_a = "refuse");
}

}  // namespace tide::python
