#include "train/count_labels.h"

#include <bit>

#include "network/kind.h"

namespace tide {

std::int64_t count_labels(const Network& network, std::span<std::int32_t> labels, std::int64_t batch) {
  std::int64_t answers = 0;
  for (const LossLabels& loss : loss_labels(network)) {
    if (loss.floats) {
      answers += batch * loss.answers;
      continue;
    }
    const std::size_t stride = labels.size() / static_cast<std::size_t>(batch);
    const auto given = static_cast<std::size_t>(loss.answers), offset = static_cast<std::size_t>(loss.offset);
    std::int64_t classes = 0;
    for (std::size_t sample = 0; sample < static_cast<std::size_t>(batch); ++sample)
      for (const std::int32_t label : labels.subspan(sample * stride + offset, given))
        classes += label >= 0 && label < loss.classes ? 1 : 0;
    answers += classes;
    if (!loss.counted) continue;
    const double all = static_cast<double>(batch) * static_cast<double>(given);
    const float factor = classes > 0 ? static_cast<float>(all / static_cast<double>(classes)) : 0;
    for (std::size_t sample = 0; sample < static_cast<std::size_t>(batch); ++sample)
      labels[sample * stride + offset + given] = std::bit_cast<std::int32_t>(factor);
  }
  return answers;
}

}  // namespace tide
