// How much to fuse is a choice too: a fused addition saves time and takes more memory at once.
// In floats, fusing changes no bits, so a step may be built in several ways and the fastest plan
// kept. In bf16 separate tasks round what fused ones keep, so everything is fused there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "planner/planner.h"

namespace tide {

// What is open about a step.
struct StepChoice {
  Bytes fuse_limit = {};     // see StepOptions
  std::int64_t samples = 0;  // of a part, or of a sub-batch of the whole; 0: the batch
  Part part = Part::whole;
  bool early_updates = false;  // where there are several ranks
  // For the options of the step with this batch.
  void apply_to(StepOptions& options) const;
};
using BuildStep = std::function<Step(const StepChoice& choice)>;

// The limits that are tried within a budget: the first fuses everything, the last, at any budget the same, no
// additions.
[[nodiscard]] std::vector<Bytes> fuse_limits(const std::optional<Bytes>& memory, DataType activations);

// The steps that a search comes across, each built once. Thread safe.
class FusedSteps {
 public:
  explicit FusedSteps(const BuildStep& build) : build_(build) {}

  // Of steps that come out the same, the limit under which one of them is known.
  [[nodiscard]] Bytes known_limit(Bytes limit);
  // REQUIRES: a known limit.
  [[nodiscard]] const Step& at(Bytes limit) const {
    const std::lock_guard lock(mutex_);
    return *steps_.at(limit);
  }
  // A part of the batch, or a step in sub-batches: built anew.
  [[nodiscard]] Step cut(const StepChoice& choice) const {
    const std::lock_guard lock(mutex_);
    return build_(choice);
  }

 private:
  mutable std::mutex mutex_;
  const BuildStep& build_;
  std::map<Bytes, std::shared_ptr<const Step>> steps_;
  std::map<Bytes, Bytes> known_;
};

}  // namespace tide
