#include "train/scores.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "network/kind.h"

namespace tide {

std::vector<std::size_t> largest(std::span<const float> values, std::size_t count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  count = std::min(count, values.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
      [&](std::size_t a, std::size_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
  order.resize(count);
  return order;
}

Scores::Scores(const Network& network) : labels_per_sample_(network.labels_per_sample()) {
  std::int64_t classes = 0;
  for (const Layer& layer : network.layers) {
    if (!is_loss(layer)) continue;
    const LossLabels labels = description_of(layer.kind).loss(layer);
    if (labels.classes == 0) continue;
    heads_.push_back({layer.name, labels.offset, layer.outputs[0].positions(), labels.classes, labels.floats});
    classes = std::max(classes, labels.classes);
  }
  if (heads_.empty()) throw Error("{} has no loss over classes, so nothing can be counted", network.name);
  for (std::vector<std::int64_t>* counts : {&shared_, &answered_, &labelled_})
    counts->assign(static_cast<std::size_t>(classes), 0);
}

std::int64_t Scores::label_of(const Head& head, std::span<const std::int32_t> labels, std::int64_t position) const {
  if (!head.soft) return labels[static_cast<std::size_t>(head.offset + position)];
  const auto at = [&](std::int64_t c) {
    return std::bit_cast<float>(labels[static_cast<std::size_t>(head.offset + c * head.positions + position)]);
  };
  std::int64_t best = 0;
  for (std::int64_t c = 1; c < head.classes; ++c)
    if (at(c) > at(best)) best = c;
  return best;
}

void Scores::add(const Session::Answers& answers) {
  const auto samples = static_cast<std::int64_t>(answers.samples.size());
  std::vector<float> values;
  for (const Head& head : heads_) {
    const auto result = std::find_if(answers.results.begin(), answers.results.end(),
                                     [&](const NamedTensor& tensor) { return tensor.name == head.layer; });
    if (result == answers.results.end()) continue;
    values.resize(static_cast<std::size_t>(head.classes));
    for (std::int64_t n = 0; n < samples; ++n) {
      const auto labels = answers.labels.subspan(static_cast<std::size_t>(n * labels_per_sample_),
                                                 static_cast<std::size_t>(labels_per_sample_));
      for (std::int64_t p = 0; p < head.positions; ++p) {
        const std::int64_t label = label_of(head, labels, p);
        if (label < 0 || label >= head.classes) continue;
        for (std::int64_t c = 0; c < head.classes; ++c)
          values[static_cast<std::size_t>(c)] =
              result->values[static_cast<std::size_t>((n * head.classes + c) * head.positions + p)];
        const std::vector<std::size_t> best = largest(values, 5);
        const auto wanted = static_cast<std::size_t>(label);
        ++answers_;
        first_ += best[0] == wanted ? 1 : 0;
        among_five_ += std::find(best.begin(), best.end(), wanted) != best.end() ? 1 : 0;
        shared_[wanted] += best[0] == wanted ? 1 : 0;
        ++answered_[best[0]];
        ++labelled_[wanted];
      }
    }
  }
}

std::optional<double> Scores::mean_intersection_over_union() const {
  const bool images = std::any_of(heads_.begin(), heads_.end(), [](const Head& head) { return head.positions > 1; });
  if (!images) return std::nullopt;
  double sum = 0;
  int classes = 0;
  for (std::size_t c = 0; c < shared_.size(); ++c) {
    const std::int64_t either = answered_[c] + labelled_[c] - shared_[c];
    if (either == 0) continue;
    sum += static_cast<double>(shared_[c]) / static_cast<double>(either);
    ++classes;
  }
  return classes > 0 ? sum / classes : 0;
}

}  // namespace tide
