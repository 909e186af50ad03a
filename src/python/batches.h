// Arrays of Python as one batch that a session reads from.
#pragma once

#include "arrays.h"

namespace tide::python {

// Whether a network with losses may go without targets: for what it answers.
enum class Unlabelled : std::uint8_t { refused, allowed };

// Samples as they lie, whatever their strides and type, and what the losses compare with. Nothing is copied but labels.
class ArrayBatch final : public Dataset {
 public:
  // `targets`: one array for each loss, in their order; or none. Throws an Error where something does not fit the
  // network.
  ArrayBatch(const Network& network, nb::handle samples, const std::vector<nb::object>& targets,
             Unlabelled unlabelled = Unlabelled::refused);

  [[nodiscard]] std::string name() const override { return "arrays"; }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(samples_.shape(0)); }
  [[nodiscard]] Shape sample() const override { return sample_; }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  [[nodiscard]] std::int64_t labels_per_sample() const override { return labels_per_sample_; }
  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override;

 private:
  void read_labels(const LossLabels& loss, const Shape& shape, nb::handle target, const std::string& what);

  AnyArray samples_;
  Shape sample_;
  std::int64_t classes_ = 0, labels_per_sample_ = 0;
  std::vector<std::int32_t> labels_;
};

// One array, a list or tuple of one for each loss, or a dict by the losses' layers; None: none.
[[nodiscard]] std::vector<nb::object> targets_by_loss(const Network& network, nb::handle given);

}  // namespace tide::python
