// Plans as Python sees them.
#pragma once

#include "settings.h"

namespace tide::python {

// A plan that fits, with what was found out about it.
struct MadePlan {
  std::shared_ptr<const Plan> plan;
  double predicted_seconds = 0, ideal_seconds = 0, plan_seconds = 0, check_seconds = 0;
  Bytes floor;
  std::string source;  // of the times
  std::string model;
};

}  // namespace tide::python
