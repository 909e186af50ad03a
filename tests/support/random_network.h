// Random small networks of every layer kind: chains, fans, joins, nested ones, shared
// weights, frozen layers. The same seed gives the same network everywhere.
#pragma once

#include <algorithm>
#include <array>

#include "support/operators.h"

namespace tide::testing_support {

class RandomNetwork {
 public:
  explicit RandomNetwork(std::uint32_t seed) : net_(seed), has_all_kinds_(seed % 4 == 3) {
    for (const LayerKind kind : kDrawn) growth_.push_back(test::record_of(kind).grow);
    // Every fourth seed has the kinds that came later too; the others stay the networks that they were.
    for (const test::OperatorRecord& record : test::operator_table())
      if (has_all_kinds_ && record.grow != nullptr &&
          std::find(kDrawn.begin(), kDrawn.end(), record.kind) == kDrawn.end())
        growth_.push_back(record.grow);
  }

  Network make(int layers) {
    const std::int64_t channels = net_.pick(1, 4), height = net_.pick(4, 9), width = net_.pick(4, 9);
    net_.produce(net_.builder().input({1, channels, height, width}));
    for (int i = 0; i < layers; ++i) add_layer();
    finish();
    return std::move(net_.builder()).build();
  }

 private:
  // Twice what is drawn twice as often.
  static constexpr std::array kDrawn{LayerKind::convolution,
                                     LayerKind::convolution,
                                     LayerKind::relu,
                                     LayerKind::sigmoid,
                                     LayerKind::batch_norm,
                                     LayerKind::dropout,
                                     LayerKind::max_pool,
                                     LayerKind::add,
                                     LayerKind::add,
                                     LayerKind::concat,
                                     LayerKind::split,
                                     LayerKind::lrn,
                                     LayerKind::fully_connected,
                                     LayerKind::transposed_convolution};

  void add_layer() {
    const Value x = net_.any();
    net_.builder().freeze(net_.chance(10));
    growth_[static_cast<std::size_t>(net_.pick(0, static_cast<std::int64_t>(growth_.size()) - 1))](net_, x);
  }

  // Brings everything that nobody uses yet into one loss, or two.
  void finish() {
    Builder& builder = net_.builder();
    builder.freeze(false);
    std::vector<Value> loose;
    for (const Value& value : net_.values())
      if (!net_.used(value)) loose.push_back(value);
    std::vector<Value> pooled;
    for (const Value& value : loose) {
      const Shape s = net_.shape(value);
      pooled.push_back(s.height() == 1 && s.width() == 1 ? value : builder.global_average_pool(value));
    }
    const Value all = pooled.size() == 1 ? pooled[0] : builder.concat(pooled);
    const Value logits = builder.fully_connected(all, {.channels = 5});
    builder.softmax_cross_entropy(logits, {.label_smoothing = net_.chance(30) ? 0.1 : 0.0});
    if (net_.chance(20))
      builder.softmax_cross_entropy(builder.fully_connected(all, {.channels = 5}), {.weight = 0.5, .label_offset = 1});
    if (!has_all_kinds_) return;
    const ElementLossOptions options{.weight = 0.3, .label_offset = 2};
    if (net_.chance(20))
      builder.sigmoid_cross_entropy(builder.fully_connected(all, {.channels = 3}), options);
    else if (net_.chance(30))
      builder.mean_squared_error(builder.fully_connected(all, {.channels = 3}), options);
  }

  GrowingNetwork net_;
  bool has_all_kinds_;
  std::vector<Grow> growth_;
};

inline NetworkPtr random_network(std::uint32_t seed) {
  std::mt19937 random(seed ^ 0x9e3779b9U);
  return std::make_shared<Network>(RandomNetwork(seed).make(3 + static_cast<int>(random() % 25)));
}

}  // namespace tide::testing_support
