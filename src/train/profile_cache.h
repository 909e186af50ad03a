// Measured times without asking for them: what a job's steps need and no earlier run has
// measured is measured once, and kept on disk by backend, device, driver and library versions.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "cost/model.h"

namespace tide {

// $XDG_CACHE_HOME/tidepool/profile-<number>.json, or below ~/.cache; the number is that of this
// machine and backend. Empty where there is no such folder.
[[nodiscard]] std::filesystem::path profile_cache_path(const Backend& backend);

// A cost model for these steps. A cache that cannot be read or written is done without.
// REQUIRES: the steps were annotated by `backend` and have their networks.
[[nodiscard]] std::shared_ptr<const CostModel> measured_cost(Backend& backend, std::span<const Step> steps,
                                                             const std::filesystem::path& cache,
                                                             double link_bytes_per_second);

}  // namespace tide
