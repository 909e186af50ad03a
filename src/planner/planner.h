// Planning: step + cost + budget -> Plan. Each policy is one file with one function; all
// are called through make_plan, which times them and has the checker prove the result.
// Nothing here knows a device.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost/model.h"
#include "memory/tensor_cache.h"
#include "plan/plan.h"

namespace tide {

// SuperNeurons' strategies for bringing back what was dropped (its section 3.4).
enum class Recompute : std::uint8_t {
  none,        // nothing is dropped
  speed,       // a segment is run again once and kept until its last use
  memory,      // it is run again for each backward task, which keeps only what it reads
  cost_aware,  // speed where that does not raise the peak of `memory`, memory elsewhere
};
[[nodiscard]] std::string_view recompute_name(Recompute recompute);
[[nodiscard]] Recompute recompute_from_name(std::string_view name);

// Where parameters and optimizer state are while no task uses them.
enum class Parameters : std::uint8_t {
  device,
  host,       // all but small ones in host memory: fetched before they are used, written back behind their update
  automatic,  // as many of them in host memory as the budget makes worth while
};
[[nodiscard]] Parameters parameters_from_name(std::string_view name);

// What convolutions run with under vDNN.
enum class Algorithms : std::uint8_t { fastest, smallest };  // smallest: in workspace
[[nodiscard]] Algorithms algorithms_from_name(std::string_view name);

// How often a layer is run again at most (Layer::mirror).
struct MirrorCount {
  std::string layer;
  std::int32_t count = 0;
};

[[nodiscard]] std::string_view replacement_name(Replacement replacement);
[[nodiscard]] Replacement replacement_from_name(std::string_view name);

struct PlannerOptions {
  std::optional<Bytes> memory = {};       // device budget; none: unlimited
  std::optional<Bytes> host_memory = {};  // likewise
  std::optional<Bytes> disk_memory = {};  // none: there is no disk tier
  bool in_place = true;                   // results may overwrite dead operands
  // offload, superneurons and auto; the others keep parameters on the device:
  Parameters parameters = Parameters::device;
  // What `parameters` comes to, by persistent storage in table order, so that all step variants of a job
  // can agree on it: those that rest in host memory. None: not decided yet.
  std::optional<std::vector<bool>> rest_in_host = {};
  Recompute recompute = Recompute::cost_aware;
  bool cache = true;  // things move and are run again only where memory is short; off: always
  Replacement replacement = Replacement::next_use;
  std::vector<LayerKind> checkpoints = {};  // whose outputs move (offload) or are not dropped; empty: the paper's
  std::vector<MirrorCount> mirror = {};     // sublinear: in addition to the network's own; any at all: no search
  bool weigh_by_cost = true;                // sublinear: where the budget leaves room, keep what takes longest to run
  std::int32_t recursion = 1;               // recursive: how many results are kept on each level
  Algorithms algorithms = Algorithms::fastest;  // vdnn-conv, vdnn-all
  // Makes the rounds of a step whose batch is cut into sub-batches, for the policies that choose their size
  // (see rounds.h), or the whole step that works on sub-batches; none: the batch stays whole.
  std::function<Step(std::int64_t samples, Part part)> cut = {};
  std::int64_t sub_batch = 0;              // every policy cuts the batch so; 0: those that choose do
  bool exact_batch_norm = false;           // batch norm keeps the statistics of the whole batch where the batch is cut
  Numerics allowed = Numerics::identical;  // the most that cutting may do to the numbers
  bool one_lane = false;                   // modnn: copies out and in take turns
};

// A plan, or why there is none: that a budget is too small is an answer, not an error.
struct PlanResult {
  std::optional<Plan> plan;
  Bytes floor;                   // the smallest device budget this policy can work with
  Bytes host_floor;              // and at this device budget, the smallest host budget
  Bytes disk_floor;              // likewise, where things go to disk
  Tier short_of = Tier::device;  // which of them was too small, where there is no plan
  std::string bottleneck_task;   // the task that needs it
  double plan_seconds = 0;       // without the checker
  double check_seconds = 0;
};

// What a policy function returns: the plan it would make with no budget beyond `options`,
// and the floor. It leaves `plan` empty where the budget is below the floor.
using PolicyFunction = PlanResult (*)(Step step, const CostModel& cost, const PlannerOptions& options);

struct Policy {
  std::string_view name;
  std::string_view description;
  PolicyFunction plan;
  bool rests_parameters = false;  // whether it heeds PlannerOptions::rest_in_host
};

[[nodiscard]] std::span<const Policy> policies();
// Throws an Error that lists the policies where the name is unknown.
[[nodiscard]] const Policy& find_policy(std::string_view name);

// Runs a policy: plans, stamps the fingerprint and the budgets, times, checks. A plan that
// the checker rejects is a bug and throws.
[[nodiscard]] PlanResult make_plan(const Policy& policy, Step step, const CostModel& cost,
                                   const PlannerOptions& options);

}  // namespace tide
