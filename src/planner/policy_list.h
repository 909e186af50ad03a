// Every policy in policies/, as the build found them there (CMakeLists.txt).
#pragma once

#include <vector>

#include "planner/policy.h"

namespace tide {

[[nodiscard]] std::vector<Policy> policy_list();

}  // namespace tide
