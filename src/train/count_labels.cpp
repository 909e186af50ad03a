#include "train/count_labels.h"

#include <bit>

#include "network/kind.h"

namespace tide {

void count_labels(const Network& network, std::span<std::int32_t> labels, std::int64_t batch) {
  for (const LossLabels& loss : loss_labels(network)) {
    if (!loss.counted) continue;
    const std::size_t stride = labels.size() / static_cast<std::size_t>(batch);
    const auto given = static_cast<std::size_t>(loss.count - 1), offset = static_cast<std::size_t>(loss.offset);
    std::int64_t classes = 0;
    for (std::size_t sample = 0; sample < static_cast<std::size_t>(batch); ++sample)
      for (const std::int32_t label : labels.subspan(sample * stride + offset, given))
        classes += label >= 0 && label < loss.classes ? 1 : 0;
    const double all = static_cast<double>(batch) * static_cast<double>(given);
    const float factor = classes > 0 ? static_cast<float>(all / static_cast<double>(classes)) : 0;
    for (std::size_t sample = 0; sample < static_cast<std::size_t>(batch); ++sample)
      labels[sample * stride + offset + given] = std::bit_cast<std::int32_t>(factor);
  }
}

}  // namespace tide
