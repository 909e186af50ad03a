// What several subcommands take: a model, a step, a budget.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "cli/planner_options.h"
#include "network/network.h"
#include "train/target.h"

namespace tide {

struct ModelArguments {
  std::string model;
  std::string input;  // CxHxW
  void add_to(CLI::App& app);
  // From the zoo or from a file.
  [[nodiscard]] NetworkPtr load() const;
};

struct BudgetArguments {
  std::string memory, host_memory, disk_memory;
  void add_to(CLI::App& app);
  // "auto" is what is free now, less a tenth: of the device where it has memory of its own. "device" is all
  // that a named device has; "total:12GiB" includes what the context and the libraries take.
  [[nodiscard]] PerTier<std::optional<Bytes>> resolve(const Target& target) const;
};

struct StepArguments {
  std::int64_t batch = 32;
  std::string rules = "minimal";
  std::string optimizer = "momentum";
  double momentum = 0.9;
  double weight_decay = 0;
  double clip = 0;
  std::string backend;
  int threads = 0;
  std::string precision = "tf32";
  bool deterministic = true;
  bool fuse = true;
  void add_to(CLI::App& app);
  [[nodiscard]] Rules rule_set() const;
  [[nodiscard]] OptimizerOptions optimizer_options() const;
  [[nodiscard]] std::string backend_name() const;
  [[nodiscard]] Precision precision_of_products() const;
  // Of layer outputs and their gradients.
  [[nodiscard]] DataType activations() const { return precision == "bf16" ? DataType::bf16 : DataType::f32; }
  // The paper's rules count layers one by one.
  [[nodiscard]] bool fuses() const { return fuse && rule_set() == Rules::minimal; }
  [[nodiscard]] StepOptions options(bool training) const;
  // With one algorithm per task where bits are to be the same; `all_algorithms`: never.
  [[nodiscard]] std::unique_ptr<Backend> make(bool all_algorithms = false) const;
};

// "64x56x56"; throws an Error that quotes the text.
[[nodiscard]] Shape parse_sample(const std::string& text);
// The line for a budget that is too small: what does not fit, what would do, what else to try.
[[nodiscard]] std::string infeasible_text(const PlanResult& result, std::string_view what,
                                          const PlannerOptions& options,
                                          std::string_view other_ways = ", use a smaller --batch, or try tide compare");

}  // namespace tide
