#include "planner/draft/resting_storages.h"

#include <algorithm>

namespace tide {

bool any_rests(const Resting& resting) { return std::find(resting.begin(), resting.end(), true) != resting.end(); }

// The host reads metrics from where the device wrote them, and rounds add to gradients all the time.
bool may_rest(const Storage& storage) {
  return storage.persistent && storage.entry.valid() && storage.tensor_class != TensorClass::metric &&
         storage.tensor_class != TensorClass::parameter_gradient;
}

bool is_worth_resting(const Storage& storage, const PlannerOptions& options) {
  return may_rest(storage) && storage.bytes > options.least_to_rest;
}

Resting resting_storages(const Step& step, const PlanningContext& context) {
  Resting resting;
  if (!context.rest_in_host || context.rest_in_host->empty()) return resting;
  resting.resize(step.storages.size());
  std::size_t number = 0;
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    if (!step.storages[s].persistent) continue;
    if (number >= context.rest_in_host->size()) break;
    resting[s] = (*context.rest_in_host)[number++] && may_rest(step.storages[s]);
  }
  return resting;
}

}  // namespace tide
