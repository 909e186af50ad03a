// What can be asked of a planner.
#pragma once

#include <any>
#include <map>
#include <optional>
#include <string_view>
#include <typeindex>
#include <variant>

#include "plan/plan.h"

namespace tide {

// Where parameters and optimizer state are while no task uses them.
enum class Parameters : std::uint8_t {
  device,
  host,       // all but small ones in host memory: fetched before they are used, written back behind their update
  automatic,  // as many of them in host memory as the budget makes worth while
};
[[nodiscard]] std::string_view parameters_name(Parameters parameters);
[[nodiscard]] Parameters parameters_from_name(std::string_view name);

// What may be done to the batch, and with it to the numbers.
struct WholeBatch {};
struct SubBatches {
  Numerics allowed = Numerics::reordered;  // the most that it may do to the numbers
  bool exact_batch_norm = false;           // batch norm keeps the statistics of the whole batch
  std::int64_t samples = 0;                // of each; 0: the policies that choose their size do
};
using Batch = std::variant<WholeBatch, SubBatches>;

// The most that a plan may do to the numbers.
[[nodiscard]] Numerics allowed_by(const Batch& batch);
// The size that was asked for; 0: none was.
[[nodiscard]] std::int64_t samples_asked(const Batch& batch);
[[nodiscard]] bool has_exact_batch_norm(const Batch& batch);

// What policies take for themselves. Each declares a struct of its own beside it, with its defaults, and finds it
// here by its type.
class PolicyOptions {
 public:
  template <typename Options>
  [[nodiscard]] const Options& get() const {
    static const Options defaults{};
    const auto it = values_.find(typeid(Options));
    return it == values_.end() ? defaults : *std::any_cast<Options>(&it->second);
  }
  template <typename Options>
  [[nodiscard]] Options& set() {
    std::any& value = values_[typeid(Options)];
    if (!value.has_value()) value = Options{};
    return *std::any_cast<Options>(&value);
  }

 private:
  std::map<std::type_index, std::any> values_;
};

struct PlannerOptions {
  PerTier<std::optional<Bytes>> memory = {};  // budgets; none: no limit, or no such tier (TierRow)
  // Of the device, beside the budget: taken by others, but what was asked for included it. Budgets are rounded (see
  // search/rungs.h) as they were asked for.
  Bytes reserved = {};
  // offload, superneurons and auto; the others keep parameters on the device:
  Parameters parameters = Parameters::automatic;
  // Of what rests in host memory: below this a copy is mostly latency, so that scales, shifts, statistics and biases
  // stay.
  Bytes least_to_rest = Bytes(64 * 1024);
  Batch batch = WholeBatch{};
  bool in_place = true;  // results may overwrite dead operands
  PolicyOptions policy = {};
};

// The defaults within a device budget.
[[nodiscard]] PlannerOptions within(const std::optional<Bytes>& device_memory);

}  // namespace tide
