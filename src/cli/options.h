// What several subcommands take: a model, a step, a budget. Defaults are the library's.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "cli/defaults.h"
#include "cli/planner_options.h"
#include "models/model.h"
#include "train/session.h"

namespace tide {

struct ModelArguments {
  std::string model;
  std::string input;  // CxHxW
  std::string loss = ModelRequest{}.loss;
  std::string weights;
  void add_to(CLI::App& app);
  // For those who compute with it.
  void add_weights_to(CLI::App& app);
  // From the zoo or from a file, with the weights that a file brings along, and those of --weights.
  [[nodiscard]] Model open() const;
  // The network alone.
  [[nodiscard]] NetworkPtr load() const { return load_model(request()).network; }

 private:
  [[nodiscard]] ModelRequest request() const;
};
// Its values become the session's parameters.
void set_values(Session& session, const Model& model);

struct BudgetArguments {
  std::optional<std::string> memory, host_memory, disk_memory;
  void add_to(CLI::App& app);
  // "auto" is what is free now, less a tenth: of the device where it has memory of its own. "device" is all
  // that a named device has; "total:12GiB" includes what the context and the libraries take.
  [[nodiscard]] PerTier<std::optional<Bytes>> resolve(const Target& target) const;
};

struct StepArguments {
  std::int64_t batch = StepVariant{}.batch;
  std::string rules{rules_name(defaults().rules)};
  std::string optimizer{optimizer_name(defaults().optimizer.kind)};
  double momentum = defaults().optimizer.momentum;
  double weight_decay = defaults().optimizer.weight_decay;
  double clip = defaults().optimizer.clip_norm;
  std::string backend;  // empty: none was named
  int threads = defaults().threads;
  std::string precision{precision_name(defaults().precision)};
  bool deterministic = defaults().deterministic;
  bool fuse = defaults().fuse;
  void add_to(CLI::App& app);
  [[nodiscard]] Rules rule_set() const;
  [[nodiscard]] OptimizerOptions optimizer_options() const;
  [[nodiscard]] std::string backend_name() const;
  [[nodiscard]] Precision precision_of_products() const;
  // Of layer outputs and their gradients.
  [[nodiscard]] DataType activations() const { return activations_of(precision_of_products()); }
  [[nodiscard]] StepOptions options(bool training) const;
  // What it says about a session.
  void apply_to(SessionOptions& session) const;
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
