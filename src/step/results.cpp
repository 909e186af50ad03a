#include <algorithm>

#include "step/assembler.h"

namespace tide {

void StepAssembler::keep_results() {
  const StepOptions& options = step_.options;
  if (options.training || options.sub_batch > 0 || options.ranks.parts > 0)
    throw Error("results are kept of whole steps that are forward only");
  const bool has_loss = network_->has_loss();
  std::vector<bool> used(static_cast<std::size_t>(value_count_), false);
  for (const Layer& layer : network_->layers)
    for (const Value input : layer.inputs) used[flat(input)] = true;
  for (std::size_t l = 0; l < network_->layers.size(); ++l) {
    const Layer& current = network_->layers[l];
    for (std::size_t o = 0; o < current.outputs.size(); ++o) {
      const Value value{LayerId(l), static_cast<std::int32_t>(o)};
      const TensorId tensor = value_tensor(value);
      if (used[flat(value)] || (has_loss && !is_loss(current)) || !tensor.valid()) continue;
      Storage& storage = step_.storages[storage_of(tensor).index()];
      if (storage.entry.valid()) throw Error("network '{}' answers with its input; give it a layer", network_->name);
      storage.persistent = true;
      storage.exit = tensor;
      step_.results.push_back(tensor);
    }
  }
  // They have storages of their own.
  const auto is_result = [&](const Task& task, std::int16_t position) {
    const TensorId tensor = step_.operands_of(task)[static_cast<std::size_t>(position)].tensor;
    return std::find(step_.results.begin(), step_.results.end(), tensor) != step_.results.end();
  };
  std::vector<InPlacePair> allowed;
  for (Task& task : step_.tasks) {
    const auto first = static_cast<std::uint32_t>(allowed.size());
    for (const InPlacePair& pair : step_.in_place_of(task))
      if (!is_result(task, pair.source) && !is_result(task, pair.target)) allowed.push_back(pair);
    task.first_in_place = first;
    task.in_place_count = static_cast<std::uint32_t>(allowed.size()) - first;
  }
  step_.in_place = std::move(allowed);
}

}  // namespace tide
