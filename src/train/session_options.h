// What a job can be told, and the steps that it is made of. These are the defaults of the command line, too: it takes
// them from here.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "executor/executor.h"
#include "train/dataset.h"
#include "train/target.h"

namespace tide {

// One shape of step over the session's parameters.
struct StepVariant {
  std::int64_t batch = 32;
  bool training = true;
  friend auto operator<=>(const StepVariant&, const StepVariant&) = default;
};

struct SessionOptions {
  std::string backend = "cpu";
  // Deterministic here is more than the backend's: each task has one algorithm, so that all
  // policies and budgets give the same bits.
  int threads = 0;
  Precision precision = Precision::tf32;  // bf16: layer outputs are stored so as well
  bool deterministic = true;
  std::string policy = "auto";
  PlannerOptions planner = {};                 // budgets and techniques
  std::string profile = {};                    // times to plan with (CostRequest), with the executor's link
  std::filesystem::path spill_directory = {};  // for the disk tier; empty: the system's for temporary files
  Rules rules = Rules::minimal;
  bool fuse = true;  // see step/fuse.h; the rules superneurons, which count layers one by one, never do
  std::uint64_t seed = kSeed;
  OptimizerOptions optimizer = {};
  std::optional<Plan> plan = {};  // for the first variant, instead of planning it
  ExecutorOptions executor = {};
};

// What a variant's step is built from.
[[nodiscard]] StepOptions step_options(const StepVariant& variant, const SessionOptions& options);
// The backend that the options name, with the times to plan with.
[[nodiscard]] std::unique_ptr<Target> make_target(const SessionOptions& options);

}  // namespace tide
