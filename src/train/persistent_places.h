// Where a plan keeps what lasts from step to step. Internal to train/.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/plan.h"

namespace tide {

// What lasts, which not all that persists does: gradients of rounds, metrics, results.
[[nodiscard]] inline bool lasts(const Storage& storage) {
  return storage.persistent && storage.tensor_class != TensorClass::parameter_gradient &&
         storage.tensor_class != TensorClass::metric && storage.tensor_class != TensorClass::activation;
}

// Where a plan keeps what lasts, in table order. All variants must agree on it: they
// work on the same parameters.
using Place = std::pair<Tier, Bytes>;
[[nodiscard]] inline std::vector<Place> persistent_places(const Plan& plan) {
  const Phase& phase = plan.phases.front();
  std::vector<std::pair<StorageId, Place>> found;
  for (const Residency& r : phase.residencies)
    if (r.first == kEntry && lasts(phase.step->storage(r.storage))) found.push_back({r.storage, {r.tier, r.address}});
  std::sort(found.begin(), found.end());
  std::vector<Place> places;
  for (const auto& [storage, place] : found) places.push_back(place);
  return places;
}

}  // namespace tide
