#include "planner/policy.h"

#include <algorithm>

#include "planner/policy_list.h"

namespace tide {

std::span<const Policy> policies() {
  static const std::vector<Policy> list = [] {
    std::vector<Policy> all = policy_list();
    std::ranges::sort(all, {}, &Policy::rank);
    return all;
  }();
  return list;
}

const Policy& find_policy(std::string_view name) {
  std::string known;
  for (const Policy& policy : policies()) {
    if (policy.name == name) return policy;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", policy.name);
  }
  throw Error("unknown policy '{}'; the policies are {}", name, known);
}

}  // namespace tide
