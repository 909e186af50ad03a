// Random networks, random budgets: every plan of every policy is proved by the checker,
// and a sample is executed and compared with `baseline` bit for bit.
//
//   plan_fuzz COUNT [FIRST_SEED]
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "executor/executor.h"
#include "memory/spill_file.h"
#include "plan/checker.h"
#include "plan/plan_json.h"
#include "plan/summary.h"
#include "planner/planner.h"
#include "planner/policies/recursive.h"
#include "planner/policies/sublinear.h"
#include "planner/policies/superneurons.h"
#include "planner/policy.h"
#include "planner/search/fusing.h"
#include "planner/vdnn/vdnn.h"
#include "step/buckets.h"
#include "step/build.h"
#include "support/alone.h"
#include "support/offload.h"
#include "support/on_device.h"
#include "support/random_network.h"
#include "train/initialize.h"

namespace tide {
namespace {

using testing_support::random_network;
using testing_support::with_offloads;

int failures = 0;

void expect(bool holds, std::uint32_t seed, std::string_view policy, std::string_view what) {
  if (holds) return;
  ++failures;
  fmt::print(stderr, "seed {}, {}: {}\n", seed, policy, what);
}

struct Outcome {
  std::vector<std::vector<float>> values;
  bool peak_as_planned = false;
};

StepOptions random_options(std::uint32_t seed) {
  std::mt19937 random(seed * 7919U + 1);
  StepOptions options;
  options.batch = 1 + static_cast<std::int64_t>(random() % 3);
  options.rules = random() % 3 == 0 ? Rules::superneurons : Rules::minimal;
  options.training = random() % 8 != 0;
  options.optimizer.kind = static_cast<OptimizerKind>(random() % 5);
  options.optimizer.clip_norm = random() % 4 == 0 ? 0.5 : 0;
  options.optimizer.weight_decay = random() % 2 == 0 ? 1e-3 : 0;
  options.fuse = options.rules == Rules::minimal && random() % 2 == 0;
  // With buckets of a few parameters or of one; the other ranks bring zeros, so that numbers are those of one.
  if (random() % 2 == 0) options.ranks.count = 2 + static_cast<std::int64_t>(random() % 3);
  options.ranks.bucket = Bytes(1 + static_cast<std::int64_t>(random() % 2000));
  options.ranks.late_updates = random() % 2 == 0;
  if (options.rules == Rules::minimal && options.training && random() % 3 == 0)
    options.ranks.parts = options.ranks.count * (options.batch == 2 ? 2 : 1);
  if (options.rules == Rules::minimal && !(options.ranks.parts > 0 && options.optimizer.clip_norm > 0))
    options.ranks.shard = static_cast<Shard>(random() % kShards);
  options.ranks.least_to_shard = Bytes(static_cast<std::int64_t>(random() % 1000));
  return options;
}

// What a bucket begins with, or the first rank's share of it: parameters as ever, moments of 0.
std::vector<std::byte> first_bytes(const Step& step, const Tensor& tensor, const Backend& backend) {
  const Bytes own = step.storage(tensor.storage).bytes;
  std::vector<std::byte> bytes((is_share(tensor) ? own * step.options.ranks.count : own).size());
  if (tensor.tensor_class == TensorClass::parameter)
    for (const View& view : step.views)
      if (view.bucket == bucket_of(tensor) && view.parameter.valid())
        backend.pack(step, view.parameter, initial_values(*step.network, view.parameter, 5),
                     bytes.data() + view.offset.size());
  bytes.resize(own.size());
  return bytes;
}

// Two steps from the same start; losses and every persistent value afterwards.
Outcome execute(const Plan& plan, Backend& backend, bool guard) {
  const PerTier<Bytes> peak = summarize(plan).peak;
  Arena arena(backend, peak[Tier::device]);
  const Arena peer(backend, peak[Tier::peer]);
  // Nobody may read what nobody has written.
  for (const Arena* const memory : {&std::as_const(arena), &peer})
    std::fill_n(memory->at(Bytes()), memory->size().size(), std::byte{0xFF});
  SpillFile disk("", peak[Tier::disk]), lent("", peak[Tier::lent]);  // any store does for another rank's memory
  Tiers tiers(arena, nullptr, &disk, &lent);
  tiers.peer = {peer.at(Bytes()), peer.size().size()};
  ExecutorOptions options;
  test::AloneAmongRanks alone;
  options.collectives = &alone;
  options.guard = guard;  // with it, lanes run in the plan's order on one thread
  const std::unique_ptr<Executor> made = make_executor(plan, backend, tiers, options);
  Executor& executor = *made;
  const Step& step = executor.step();
  std::vector<TensorId> persistent;
  for (const Storage& storage : step.storages)
    if (storage.persistent && storage.entry.valid()) persistent.push_back(storage.entry);
  for (const TensorId id : persistent) {
    const Tensor& tensor = step.tensor(id);
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()), 0.0F);
    if (is_bucket(tensor) || is_share(tensor)) {
      executor.write_bytes(tensor.storage, Bytes(), first_bytes(step, tensor, backend));
      continue;
    }
    if (tensor.tensor_class != TensorClass::optimizer_state)
      values = initial_values(*step.network, tensor.parameter, 5);
    executor.write(id, values);
  }
  Outcome outcome;
  std::vector<std::vector<float>>& results = outcome.values;
  for (std::uint64_t round = 0; round < 2; ++round) {
    std::mt19937 random(static_cast<std::uint32_t>(round));
    for (float& value : executor.input()) value = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
    for (std::int32_t& label : executor.labels()) label = static_cast<std::int32_t>(random() % 5);
    executor.run({.seed = 3,
                  .step = round,
                  .learning_rate = 0.01,
                  .update_count = static_cast<std::int64_t>(round) + 1,
                  .first_sample = 0,
                  .global_batch = batch_of(plan)});
    results.push_back({static_cast<float>(executor.metric().loss)});
  }
  outcome.peak_as_planned = executor.high_water() == summarize(plan).peak[Tier::device];
  for (const TensorId id : persistent) {
    std::vector<float> values(static_cast<std::size_t>(step.tensor(id).shape.elements()));
    executor.read(id, values);
    results.push_back(std::move(values));
  }
  return outcome;
}

bool equal_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].size() != b[i].size() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0)
      return false;
  return true;
}

// Sub-batches add up in another order. Training of random networks may well be unstable, so this is no measure of
// precision: those are in tests/executor.
bool about_equal(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    double difference = 0, norm = 0;
    for (std::size_t k = 0; k < a[i].size(); ++k) {
      const double x = static_cast<double>(a[i][k]), y = static_cast<double>(b[i][k]);
      if (!std::isfinite(y)) continue;  // the baseline does not know it either
      difference += std::abs(x - y);
      norm += std::abs(y);
    }
    if (!(difference <= 1e-2 * norm + 1e-3)) return false;  // nor where it is no number
  }
  return true;
}

struct Counts {
  int planned = 0, infeasible = 0, moving = 0, resting = 0, cut = 0, moved = 0, executed = 0;
};
constexpr std::size_t kMostPersistent = 512;  // storages of a random network

// Every way to plan, with budgets from just above the floor up.
PlanningContext random_planner(const Step& step, std::mt19937& random) {
  PlanningContext options = test::on_device();
  options.policy.set<RecursiveOptions>().kept = 1 + static_cast<std::int32_t>(random() % 3);
  options.policy.set<SublinearOptions>().weigh_by_cost = random() % 2 == 0;
  options.policy.set<VdnnOptions>().algorithms = static_cast<Algorithms>(random() % 2);
  if (random() % 4 == 0)
    options.policy.set<StaggerOptions>() = {.layers = static_cast<std::int32_t>(random() % 6),
                                            .index = static_cast<std::int32_t>(random() % 3)};
  if (random() % 3 == 0) {
    auto& early = options.policy.set<TriggerOptions>().early.emplace();
    for (int swap = 0; swap < 6; ++swap)
      early.push_back(random() % 6 == 0 ? kNoTrigger : static_cast<std::int32_t>(random() % 12));
  }
  if (random() % 3 == 0)
    for (const std::string& layer : step.layer_names)
      options.policy.set<SublinearOptions>().mirror.push_back({layer, static_cast<std::int32_t>(random() % 4)});
  options.in_place = random() % 4 != 0;
  options.policy.set<SuperneuronsOptions>().recompute = static_cast<Recompute>(random() % 4);
  options.policy.set<SuperneuronsOptions>().cache = random() % 3 != 0;
  options.policy.set<SuperneuronsOptions>().replacement = static_cast<Replacement>(random() % 4);
  if (random() % 4 == 0)
    options.policy.set<SuperneuronsOptions>().checkpoints = {LayerKind::convolution, LayerKind::concat};
  // Everything that persists in host memory, some of it, or nothing: networks are too small for the planner to choose.
  const unsigned rests = random() % 4;
  if (rests < 2) {
    options.rest_in_host.emplace(kMostPersistent, true);
    if (rests == 0)
      for (std::size_t s = 0; s < kMostPersistent; ++s) (*options.rest_in_host)[s] = random() % 2 == 0;
  }
  return options;
}

// Now and then the batch may be cut, or has to be.
void cut_at_random(const NetworkPtr& network, const Step& step, const Backend& backend, std::mt19937& random,
                   PlanningContext& options) {
  if (random() % 4 != 0 || step.options.ranks.parts > 0) return;
  SubBatches cut{.allowed = Numerics::changed};
  cut.exact_batch_norm = step.options.rules == Rules::minimal && random() % 2 == 0;
  if (random() % 2 == 0) cut.samples = 1 + static_cast<std::int64_t>(random() % 2);
  options.batch = cut;
  options.cut = [network, given = step.options, &backend](std::int64_t samples, Part part) {
    StepOptions piece = given;
    StepChoice{given.fuse_limit, samples, part}.apply_to(piece);
    Step made = build_step(network, piece);
    backend.annotate(made);
    return made;
  };
}

bool has_copies(const Plan& plan) {
  const auto& ops = plan.phases.front().ops;
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.is_copy(); });
}

bool has_resting(const Plan& plan) {
  const auto& stays = plan.phases.front().residencies;
  return std::any_of(stays.begin(), stays.end(),
                     [](const Residency& r) { return r.first == kEntry && r.tier == Tier::host; });
}

bool has_replays(const Plan& plan) {
  const Phase& phase = plan.phases.front();
  return std::any_of(phase.ops.begin(), phase.ops.end(), [&](const Op& op) {
    return op.is_run() && phase.step->task(op.run().task).kind == TaskKind::replay;
  });
}

// A plan that moves things, with less host memory than that takes, and a disk; now and then with memory of others.
std::optional<Plan> spilled(const Policy& policy, const Step& step, const CostModel& cost, PlanningContext options,
                            Bytes host, std::mt19937& random) {
  const auto some = [&] {
    return Bytes(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(host.count())));
  };
  options.memory[Tier::host] = some();
  if (random() % 2 == 0) options.memory[Tier::lent] = some();
  if (random() % 2 == 0) options.memory[Tier::peer] = some();
  options.memory[Tier::disk] = Bytes(std::int64_t{1} << 40);
  const PlanResult result = make_plan(policy, step, cost, options);
  if (result.plan) return result.plan;
  // Infeasible says what is feasible.
  options.memory[Tier::host] = result.floor[Tier::host];
  return make_plan(policy, step, cost, options).plan;
}

void fuzz_one(std::uint32_t seed, const std::vector<std::unique_ptr<Backend>>& backends, Counts& counts) {
  const RooflineModel cost(generic_cpu());
  std::mt19937 random(seed);
  // The slow oracle backend mostly, the real one now and then: its primitives take longer to prepare.
  Backend& backend = *backends[seed % 40 == 0 ? backends.size() - 1 : 0];
  const NetworkPtr network = random_network(seed);
  Step step = build_step(network, random_options(seed));
  backend.annotate(step);
  const PlanResult baseline = make_plan(find_policy("baseline"), step, cost, {});
  const double share = 0.3 + 0.001 * static_cast<double>(random() % 1000);
  const Bytes budget(static_cast<std::int64_t>(static_cast<double>(baseline.floor[Tier::device].count()) * share));
  const bool run = seed % 8 == 0;
  const Outcome expected = run ? execute(*baseline.plan, backend, true) : Outcome{};
  const auto run_and_compare = [&](const Plan& plan, std::string_view name) {
    const Outcome outcome = execute(plan, backend, seed % 16 == 0);
    if (plan.numerics == Numerics::identical)
      expect(equal_bits(outcome.values, expected.values), seed, name, "other bits than baseline");
    // Adam makes a whole step of a gradient that is nothing but rounding.
    const bool steady = step.options.optimizer.kind < OptimizerKind::adam;
    if (plan.numerics == Numerics::reordered && steady)
      expect(about_equal(outcome.values, expected.values), seed, name, "in sub-batches, other values than baseline");
    expect(outcome.peak_as_planned, seed, name, "high-water mark is not the plan's peak");
    ++counts.executed;
  };
  for (const Policy& policy : policies()) {
    PlanningContext options = random_planner(step, random);
    cut_at_random(network, step, backend, random, options);
    options.memory[Tier::device] = budget;
    PlanResult result = make_plan(policy, step, cost, options);
    expect(result.plan.has_value() == (result.floor[Tier::device] <= budget), seed, policy.name,
           fmt::format("feasible is not floor <= budget: {} of {} bytes", result.floor[Tier::device].count(),
                       budget.count()));
    if (random() % 3 == 0) {
      options.memory[Tier::device] = result.floor[Tier::device];
      result = make_plan(policy, step, cost, options);
      expect(result.plan.has_value(), seed, policy.name,
             fmt::format("the floor is not feasible: {} bytes, then {}, short of {}",
                         options.memory[Tier::device]->count(), result.floor[Tier::device].count(),
                         tier_name(result.short_of)));
    }
    if (!result.plan) {
      ++counts.infeasible;
      expect(!result.bottleneck_task.empty(), seed, policy.name, "no bottleneck is named");
      continue;
    }
    ++counts.planned;
    if (has_resting(*result.plan)) ++counts.resting;
    if (sub_batch_of(*result.plan) < batch_of(*result.plan)) ++counts.cut;
    expect(summarize(*result.plan).peak[Tier::device] <= *options.memory[Tier::device], seed, policy.name,
           "peak above the budget");
    expect(check(plan_from_json(to_json(*result.plan))).empty(), seed, policy.name, "not valid after a round trip");
    if (run) run_and_compare(*result.plan, policy.name);
    if (has_copies(*result.plan)) {
      ++counts.moving;
      const std::optional<Plan> to_disk =
          spilled(policy, step, cost, options, summarize(*result.plan).peak[Tier::host], random);
      expect(to_disk.has_value(), seed, policy.name, "infeasible with the host memory it asked for, and a disk");
      if (to_disk && run) run_and_compare(*to_disk, "spilled");
      continue;
    }
    if (has_replays(*result.plan) || result.plan->phases.size() > 1 || step.options.ranks.count > 1) continue;
    int moved = 0;
    const Plan offloaded = with_offloads(*result.plan, seed, 30, moved);
    if (moved == 0) continue;
    counts.moved += moved;
    const std::vector<Finding> findings = check(offloaded);
    expect(findings.empty(), seed, policy.name, findings.empty() ? "" : findings[0].text);
    if (run && findings.empty() && policy.name == "liveness") run_and_compare(offloaded, "liveness with copies");
  }
}

int run(std::uint32_t count, std::uint32_t first) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_backend("reference"));
  try {
    backends.push_back(make_backend("cpu"));
  } catch (const Error& error) {
    fmt::print("reference backend only: {}\n", error.what());
  }
  Counts counts;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    try {
      fuzz_one(seed, backends, counts);
    } catch (const std::exception& error) {
      expect(false, seed, "any policy", error.what());
    }
  }
  fmt::print(
      "{} networks: {} plans proved, {} of them with copies, {} with resting parameters, {} in sub-batches, {} budgets "
      "too small, {} storages moved at random, {} plans "
      "executed\n",
      count, counts.planned, counts.moving, counts.resting, counts.cut, counts.infeasible, counts.moved,
      counts.executed);
  if (counts.planned == 0 || (count >= 8 && (counts.executed == 0 || counts.resting == 0 || counts.cut == 0))) return 1;
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tide

int main(int argc, char** argv) {
  const auto number = [&](int at, int otherwise) {
    return static_cast<std::uint32_t>(argc > at ? std::atoi(argv[at]) : otherwise);
  };
  return tide::run(number(1, 2000), number(2, 0));
}
