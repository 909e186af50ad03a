#include "batches.h"

#include <bit>
#include <cstring>

namespace tide::python {
namespace {

float number_at(const std::byte* at, nb::dlpack::dtype type) {
  const auto read = [&]<typename Value>(Value value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<float>(value);
  };
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  if (code == nb::dlpack::dtype_code::Float) return type.bits == 32 ? read(float{}) : read(double{});
  return read(std::uint8_t{});
}

bool is_readable(nb::dlpack::dtype type) {
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  if (code == nb::dlpack::dtype_code::Float) return type.bits == 32 || type.bits == 64;
  return code == nb::dlpack::dtype_code::UInt && type.bits == 8;
}

// Elements of one sample on their way from an array's order (channels first, any strides) to channels last.
class Reader {
 public:
  Reader(const AnyArray& array, std::int64_t index) : type_(array.dtype()) {
    const std::int64_t bytes = type_.bits / 8;
    first_ = static_cast<const std::byte*>(array.data()) + index * array.stride(0) * bytes;
    for (std::size_t axis = 1; axis < array.ndim(); ++axis) {
      extents_.push_back(static_cast<std::int64_t>(array.shape(axis)));
      strides_.push_back(array.stride(axis) * bytes);
    }
    if (extents_.empty()) {
      extents_.push_back(1);
      strides_.push_back(bytes);
    }
  }

  void read(std::span<float> values) const {
    const bool floats =
        static_cast<nb::dlpack::dtype_code>(type_.code) == nb::dlpack::dtype_code::Float && type_.bits == 32;
    if (floats && is_channels_last()) {
      std::memcpy(values.data(), first_, values.size_bytes());
      return;
    }
    const std::int64_t channels = extents_[0];
    for (std::int64_t c = 0; c < channels; ++c) {
      float* to = values.data() + c;
      walk(1, first_ + c * strides_[0], [&](const std::byte* at) {
        *to = number_at(at, type_);
        to += channels;
      });
    }
  }

 private:
  [[nodiscard]] bool is_channels_last() const {
    std::int64_t stride = type_.bits / 8;
    const auto follows = [&](std::size_t axis) {
      const bool fits = extents_[axis] == 1 || strides_[axis] == stride;
      stride *= extents_[axis];
      return fits;
    };
    bool all = follows(0);
    for (std::size_t axis = extents_.size(); all && axis-- > 1;) all = follows(axis);
    return all;
  }

  template <typename Visit>
  void walk(std::size_t axis, const std::byte* at, const Visit& visit) const {
    if (axis >= extents_.size()) return visit(at);
    for (std::int64_t i = 0; i < extents_[axis]; ++i) walk(axis + 1, at + i * strides_[axis], visit);
  }

  nb::dlpack::dtype type_;
  const std::byte* first_ = nullptr;
  std::vector<std::int64_t> extents_, strides_;  // strides in bytes
};

AnyArray array_in_host_memory(nb::handle given, const std::string& what) {
  AnyArray array;
  if (!nb::try_cast(nb::borrow(given), array, false))
    throw Error("{}: is no array in the processor's memory; give a numpy array, or one that DLPack can hand over",
                what);
  return array;
}

std::vector<std::int64_t> extents_of_array(const AnyArray& array) {
  std::vector<std::int64_t> extents;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis)
    extents.push_back(static_cast<std::int64_t>(array.shape(axis)));
  return extents;
}

std::vector<const Layer*> loss_layers(const Network& network) {
  std::vector<const Layer*> layers;
  for (const Layer& layer : network.layers)
    if (is_loss(layer)) layers.push_back(&layer);
  return layers;
}

}  // namespace

ArrayBatch::ArrayBatch(const Network& network, nb::handle samples, const std::vector<nb::object>& targets,
                       Unlabelled unlabelled)
    : samples_(array_in_host_memory(samples, "the samples")),
      sample_(network.input_sample()),
      classes_(network.classes()),
      labels_per_sample_(network.labels_of_data()) {
  if (!is_readable(samples_.dtype()))
    throw Error("the samples: their type is not one that is read; convert them to float32, float64 or uint8");
  const std::vector<std::int64_t> given = extents_of_array(samples_);
  std::vector<std::int64_t> wanted = extents_of(sample_);
  if (given.empty() || given[0] < 1)
    throw Error("the samples have extents {}; give a batch of {}", extents_text(given), sample_text(sample_));
  wanted[0] = given[0];
  if (given != wanted)
    throw Error("the samples have extents {}; {} takes a batch of {}", extents_text(given), network.name,
                sample_text(sample_));
  const std::vector<LossLabels> losses = loss_labels(network);
  labels_.resize(static_cast<std::size_t>(checked_multiply(size(), labels_per_sample_)));
  if (targets.empty() && unlabelled == Unlabelled::allowed) return;
  if (targets.size() != losses.size())
    throw Error("{} has {} losses and was given {} arrays of targets; give one for each", network.name, losses.size(),
                targets.size());
  const std::vector<const Layer*> layers = loss_layers(network);
  for (std::size_t l = 0; l < losses.size(); ++l)
    read_labels(losses[l], network.shape(layers[l]->inputs[0]), targets[l],
                fmt::format("the targets of loss '{}'", layers[l]->name));
}

void ArrayBatch::read_labels(const LossLabels& loss, const Shape& shape, nb::handle target, const std::string& what) {
  if (!loss.floats) {
    const ForeignTensor tensor = tensor_of(target, what);
    if (tensor.type == ForeignType::f32 || tensor.type == ForeignType::f64 || tensor.type == ForeignType::f16 ||
        tensor.type == ForeignType::bf16)
      throw Error("{}: are numbers with fractions; this loss compares with classes, which are whole numbers", what);
    const std::int64_t count = loss.counted ? loss.count - 1 : loss.count;
    if (product_of(tensor.shape) != checked_multiply(size(), count))
      throw Error("{}: have extents {}; give {} for each of {} samples", what, extents_text(tensor.shape), count,
                  size());
    const std::vector<double> values = doubles_of(tensor);
    for (std::int64_t n = 0; n < size(); ++n)
      for (std::int64_t i = 0; i < count; ++i) {
        const double value = values[static_cast<std::size_t>(n * count + i)];
        const bool is_class = value >= 0 && value < static_cast<double>(loss.classes);
        if (!is_class && !(loss.counted && (value == -1 || value == -100 || value == 255)))
          throw Error("{}: {} of sample {} is none of the {} classes, which count from 0{}", what, value, n,
                      loss.classes,
                      loss.counted ? "; -1, -100 and 255 are left out"
                                   : "; network.adapt(gaps_in_labels=True) leaves -1, -100 and 255 out");
        labels_[static_cast<std::size_t>(n * labels_per_sample_ + loss.offset + i)] =
            is_class ? static_cast<std::int32_t>(value) : -1;
      }
    return;
  }
  const AnyArray array = array_in_host_memory(target, what);
  if (!is_readable(array.dtype())) throw Error("{}: their type is not one that is read; convert them to float32", what);
  std::vector<std::int64_t> given = extents_of_array(array), wanted = extents_of(shape);
  wanted[0] = size();
  // One number for each sample may come without the extent of 1.
  const bool flat = given.size() == 1 && shape.per_sample() == 1;
  if (given != wanted && !(flat && given[0] == size()))
    throw Error("{}: have extents {}; they must be those of what they are compared with, {}", what, extents_text(given),
                extents_text(wanted));
  std::vector<float> values(static_cast<std::size_t>(loss.count));
  for (std::int64_t n = 0; n < size(); ++n) {
    Reader(array, n).read(values);
    for (std::size_t i = 0; i < values.size(); ++i)
      labels_[static_cast<std::size_t>(n * labels_per_sample_ + loss.offset) + i] =
          std::bit_cast<std::int32_t>(values[i]);
  }
}

void ArrayBatch::read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const {
  Reader(samples_, index).read(values);
  std::copy_n(labels_.begin() + index * labels_per_sample_, labels_per_sample_, labels.begin());
}

std::vector<nb::object> targets_by_loss(const Network& network, nb::handle given) {
  if (given.is_none()) return {};
  std::vector<nb::object> targets;
  if (nb::isinstance<nb::dict>(given)) {
    const auto by_name = nb::cast<nb::dict>(given);
    for (const Layer* const layer : loss_layers(network)) {
      if (!by_name.contains(layer->name.c_str()))
        throw Error("there are no targets for loss '{}'; network.losses lists them all", layer->name);
      targets.push_back(by_name[layer->name.c_str()]);
    }
    return targets;
  }
  if (nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given)) {
    const std::size_t losses = loss_layers(network).size(), count = nb::len(given);
    // A list of labels is an array as well, but not one that says its type.
    if (count != losses)
      throw Error("{} has {} losses and was given {} arrays of targets; give one for each", network.name, losses,
                  count);
    for (const nb::handle item : given) targets.push_back(nb::borrow(item));
    return targets;
  }
  return {nb::borrow(given)};
}

}  // namespace tide::python
