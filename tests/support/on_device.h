// Options for tests in which parameters and optimizer state stay on the device, so that a policy has all of a budget's
// shortage to itself; by default some of them rest in host memory where a budget is short.
#pragma once

#include "planner/options.h"

namespace tide::test {

inline PlannerOptions on_device(const std::optional<Bytes>& device_memory = {}) {
  PlannerOptions options = within(device_memory);
  options.parameters = Parameters::device;
  return options;
}

}  // namespace tide::test
