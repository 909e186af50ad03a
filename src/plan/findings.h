// Internal to the checker: its parts and what they share.
#pragma once

#include <array>
#include <vector>

#include "plan/checker.h"

namespace tide::checker {

class Findings {
 public:
  explicit Findings(std::size_t limit) : limit_(limit) {}

  template <typename... Args>
  void add(FindingKind kind, fmt::format_string<Args...> format, Args&&... args) {
    if (!full()) list_.push_back({kind, fmt::format(format, std::forward<Args>(args)...)});
  }
  [[nodiscard]] bool full() const { return list_.size() >= limit_; }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::vector<Finding> take() && { return std::move(list_); }

 private:
  std::size_t limit_;
  std::vector<Finding> list_;
};

// Happens-before: for each op and lane, the last op of that lane that is certainly over
// when this op starts (-1: none).
using Clock = PerLane<std::int32_t>;
[[nodiscard]] std::vector<Clock> happens_before(const Phase& phase);
[[nodiscard]] inline bool over_before(const Phase& phase, const std::vector<Clock>& clocks, std::int32_t earlier,
                                      std::int32_t op) {
  if (earlier < 0) return true;
  return earlier <= clocks[static_cast<std::size_t>(op)][phase.ops[static_cast<std::size_t>(earlier)].lane];
}

// The last op of each lane that touches a residency; filled by check_values.
using Touches = std::vector<Clock>;

void check_structure(const Phase& phase, Findings& findings);
// REQUIRES: every id but those of views is within its table.
void check_views(const Step& step, Findings& findings);
void check_values(const Phase& phase, const std::vector<Clock>& clocks, Touches& touches, Findings& findings);
void check_addresses(const Phase& phase, const std::vector<Clock>& clocks, const Touches& touches, Findings& findings);
void check_phases(const Plan& plan, Findings& findings);
void check_budget(const Plan& plan, const Phase& phase, Findings& findings);

// "conv1.y" for messages: the first tensor that lives in a storage.
[[nodiscard]] std::string storage_name(const Step& step, StorageId storage);
[[nodiscard]] std::string op_name(const Phase& phase, std::int32_t op);

}  // namespace tide::checker
