// What steps are planned for: a backend of this machine, or a device that is known by its data
// sheet alone. It says which algorithms a step's tasks have and how long they take.
#pragma once

#include <optional>

#include "planner/policy.h"
#include "planner/search/search.h"
#include "train/cost_choice.h"

namespace tide {

class Target {
 public:
  Target(std::unique_ptr<Backend> backend, const CostRequest& request);
  // With times that somebody else chose.
  Target(std::unique_ptr<Backend> backend, CostChoice choice);
  // The sheet outlives it. Above 0, `link_bytes_per_second` is the link's instead of the sheet's.
  explicit Target(const DeviceSheet& sheet, double link_bytes_per_second = 0);

  // One of the two is null.
  [[nodiscard]] Backend* backend() const { return backend_.get(); }
  [[nodiscard]] const DeviceSheet* sheet() const { return sheet_; }
  [[nodiscard]] const CostModel& cost() const { return *choice_.model; }
  // One line, or empty: times are not what was asked for.
  [[nodiscard]] const std::string& warning() const { return choice_.warning; }
  // Where the times come from, in words; ask behind planning, when it shows what a profile lacks.
  [[nodiscard]] std::string source() const;

  // The step as it runs there. Where times are measured, those of parts are taken here, since only a
  // planner knows which parts it tries.
  [[nodiscard]] Step build(const NetworkPtr& network, StepOptions options, const StepChoice& choice) const;
  // Measures what is not known yet of a step, where times are measured at all.
  void cover(const Step& step) const;
  // The same for the steps that planning within a budget begins with.
  void cover(const BuildStep& build, const std::optional<Bytes>& memory) const;

 private:
  std::unique_ptr<Backend> backend_;
  const DeviceSheet* sheet_ = nullptr;  // null: there is a backend
  CostChoice choice_;
};

// The planner's options with what a device that works by itself takes besides the plan left out of the
// budget: the recorded step, and, where that is a small part, room for the next batch, which can be sent
// meanwhile. The same options on any other.
struct Reserved {
  PlannerOptions planner;
  bool sends_ahead = false;  // there is room for the next batch
};
[[nodiscard]] Reserved reserve(const Target& target, const BuildStep& build, const PlannerOptions& options);

// Plans one step as a session plans the first of its own.
[[nodiscard]] PlanResult plan_on(const Target& target, const Policy& policy, const BuildStep& build,
                                 const PlannerOptions& options);

}  // namespace tide
