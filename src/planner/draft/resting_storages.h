// Which storages of a step rest in host memory (search/resting.h says how that is chosen).
#pragma once

#include <vector>

#include "planner/planner.h"

namespace tide {

// By storage; empty: none rests.
using Resting = std::vector<bool>;
[[nodiscard]] inline bool rests(const Resting& resting, StorageId storage) {
  return !resting.empty() && resting[storage.index()];
}
[[nodiscard]] bool any_rests(const Resting& resting);

// Whether a step could find a storage in host memory and leave it there; and whether that is worth a copy.
[[nodiscard]] bool may_rest(const Storage& storage);
[[nodiscard]] bool is_worth_resting(const Storage& storage, const PlannerOptions& options);

// PlanningContext::rest_in_host for the storages of a step.
[[nodiscard]] Resting resting_storages(const Step& step, const PlanningContext& context);

}  // namespace tide
