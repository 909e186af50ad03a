#include "network/network.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "network/kind.h"

namespace tide {
namespace {

class Fingerprint {
 public:
  void add(std::int64_t value) {
    auto bits = static_cast<std::uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8) hash_.add_byte(static_cast<std::uint8_t>(bits));
  }
  void add(double value) { add(std::bit_cast<std::int64_t>(value)); }
  void add(const std::string& text) {
    add(static_cast<std::int64_t>(text.size()));
    hash_.add(text);
  }
  void add(const Shape& shape) {
    if (shape.rank() != 4) add(static_cast<std::int64_t>(shape.rank()));  // images are what they always were
    for (const std::int64_t size : shape.extents()) add(size);
  }
  void add(const Window& w) {
    for (const std::int64_t number : {w.kernel_height, w.kernel_width, w.stride_height, w.stride_width, w.pad_top,
                                      w.pad_left, w.pad_bottom, w.pad_right, w.dilation_height, w.dilation_width})
      add(number);
  }
  void add(bool value) { add(std::int64_t{value}); }
  template <NamedEnum Enum>
  void add(Enum value) {
    add(static_cast<std::int64_t>(value));
  }

  void add(const std::vector<std::int64_t>& list) {
    add(static_cast<std::int64_t>(list.size()));
    for (const std::int64_t number : list) add(number);
  }

  template <typename Options>
  void operator()(const Options& options) {
    for_each_field(options, [&](const auto& described, const auto& value) {
      if (described.use != FieldUse::derived) add(value);
    });
  }

  [[nodiscard]] std::uint64_t value() const { return hash_.value(); }

 private:
  Fnv hash_;
};

void add_ids(Fingerprint& hash, const std::vector<LayerParameter>& parameters) {
  hash.add(static_cast<std::int64_t>(parameters.size()));
  for (const LayerParameter& parameter : parameters) hash.add(std::int64_t{parameter.id.value()});
}

void add_layer(Fingerprint& hash, const Layer& layer) {
  hash.add(static_cast<std::int64_t>(layer.kind));
  hash.add(layer.name);
  hash.add(static_cast<std::int64_t>(layer.inputs.size()));
  for (const Value& input : layer.inputs)
    hash.add(std::int64_t{input.layer.value()}), hash.add(std::int64_t{input.output});
  hash.add(static_cast<std::int64_t>(layer.options.index()));
  std::visit(hash, layer.options);
  for (const Shape& shape : layer.outputs) hash.add(shape);
  add_ids(hash, layer.parameters);
  add_ids(hash, layer.statistics);
  hash.add(layer.frozen);
  hash.add(std::int64_t{layer.mirror});
}

}  // namespace

std::int64_t Network::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters) {
    if (is_statistic(parameter.role)) continue;
    count = checked_add(count, parameter.shape.elements());
  }
  return count;
}

std::int64_t Network::labels_per_sample() const {
  std::int64_t end = 0;
  for (const LossLabels& labels : loss_labels(*this)) end = std::max(end, checked_add(labels.offset, labels.count));
  return end;
}

std::int64_t Network::labels_of_data() const {
  std::int64_t end = 0;
  for (const LossLabels& labels : loss_labels(*this))
    end = std::max(end, checked_add(labels.offset, labels.count - (labels.counted ? 1 : 0)));
  return end;
}

bool Network::has_loss() const {
  return std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return is_loss(layer); });
}

std::int64_t Network::classes() const {
  for (const LossLabels& labels : loss_labels(*this))
    if (labels.classes > 0) return labels.classes;
  return 0;
}

const Shape& Network::input_sample() const {
  for (const Layer& layer : layers)
    if (layer.kind == LayerKind::input) return layer.outputs[0];
  throw Error("network '{}' has no input layer; add one", name);
}

// The network's own name is left out: renaming it changes nothing that is computed.
std::uint64_t Network::fingerprint() const {
  Fingerprint hash;
  hash.add(static_cast<std::int64_t>(layers.size()));
  for (const Layer& layer : layers) add_layer(hash, layer);
  hash.add(static_cast<std::int64_t>(parameters.size()));
  for (const Parameter& parameter : parameters) {
    hash.add(parameter.name);
    hash.add(static_cast<std::int64_t>(parameter.role));
    hash.add(parameter.shape);
    hash.add(parameter.frozen);
  }
  return hash.value();
}

}  // namespace tide
