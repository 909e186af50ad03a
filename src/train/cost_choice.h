// The one place that chooses what plans are timed by. All commands and sessions ask here, so that
// the same words give the same times, and with them the same plan.
#pragma once

#include <memory>
#include <string>

#include "cost/devices.h"
#include "train/profile_cache.h"

namespace tide {

struct CostRequest {
  // A file of measured times; "auto": measured on the backend where no earlier run did; "none":
  // modelled; empty: auto on a device of its own, which is worth it, none on a processor, whose
  // times drift with what else runs.
  std::string profile = {};
  // Above 0: the speed of copies between device and host, each way.
  double link_bytes_per_second = 0;
};

struct CostChoice {
  std::shared_ptr<const CostModel> model = {};
  std::shared_ptr<MeasuredCost> measured = {};  // the model, where it is to be told what to measure; else null
  std::string source = {};                      // in words, such as "modelled (k40c)"
  std::string warning = {};                     // one line where the choice is not what was asked for, or empty
};

// For steps that this backend runs. A link is slowed down by the request, never made faster.
[[nodiscard]] CostChoice choose_cost(Backend& backend, const CostRequest& request);
// For steps that are planned for a device by its data sheet. A link is what the request says.
[[nodiscard]] CostChoice choose_cost(const DeviceSheet& sheet, double link_bytes_per_second);

}  // namespace tide
