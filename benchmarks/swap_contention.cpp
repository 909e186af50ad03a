// Swaps of ranks that share one link to their host: every rank its convolutions' inputs (vdnn-conv), layers in turn
// (--stagger paper and auto), and no swaps; measured, beside what the simulator says of the same plans.
//
//   swap_contention
//     VGG16 on modelled P100 (sleeping_backend.h), ranks as threads. Copies and sums go over one throttled link that
//     all ranks share, as slow as the device sleeps. Within a budget half way between what swapping all and nothing
//     takes.
//   swap_contention --backend cuda [MODEL [BATCH [RANKS]]]
//     Ranks as threads of this process on one GPU, with its own kernels and its own PCIe link; jobs as tide train opens
//     them. What the GPU's arithmetic is shared by is in all rows alike.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "base/size_text.h"
#include "base/stopwatch.h"
#include "cluster/threads.h"
#include "cost/devices.h"
#include "executor/executor.h"
#include "plan/summary.h"
#include "planner/planner.h"
#include "planner/ranks/ranks.h"
#include "sleeping_backend.h"
#include "step/build.h"
#include "train/plan_network.h"
#include "train/rank_swaps.h"
#include "train/session.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

constexpr int kSteps = 3;             // of which the fastest counts: what disturbs them only adds
constexpr double kStepSeconds = 1.5;  // what a step without swaps and sums is slowed down to

// The fastest of some steps, each as long as the slowest rank's.
template <typename RunStep>
double fastest_step(Communicator& ranks, int steps, const RunStep& run) {
  double fastest = 0;
  for (int step = 0; step < steps; ++step) {
    ranks.barrier();
    const Stopwatch watch;
    run();
    ranks.barrier();
    const double seconds = watch.seconds();
    if (step == 0 || seconds < fastest) fastest = seconds;
  }
  return fastest;
}

// Sums as the simulator has them by way of host memory: every rank sends all, then gets all, once everybody is there.
// What adds takes no time.
class LinkedSums final : public Collectives {
 public:
  LinkedSums(Communicator& ranks, SharedLink& link) : ranks_(ranks), link_(link) {}
  [[nodiscard]] int rank() const override { return ranks_.rank(); }
  [[nodiscard]] Kernel prepare(const Step& step, TaskId task) override {
    const Bytes bytes = collective_bytes(step, task);
    return [this, bytes](const Launch&) {
      for (const Route way : {Route::out, Route::in}) {
        ranks_.barrier();
        for (Bytes left = bytes; !left.is_zero();) {
          const Bytes piece = std::min(left, Bytes(SharedLink::kPiece));
          link_.pass(way, piece);
          left -= piece;
        }
      }
    };
  }

 private:
  Communicator& ranks_;
  SharedLink& link_;
};

void print_head() {
  fmt::print("{:>5}  {:<38} {:>10} {:>9} {:>9} {:>9} {:>8} {:>9}\n", "ranks", "way", "out, each", "simulated",
             "measured", "ratio", "of none", "simulated");
}

struct Row {
  std::string way;
  Bytes out = {};  // of the rank that sends most
  double simulated = 0, measured = 0;
};

// Ratios are of the first, which does not swap.
void print_rows(int ranks, const std::vector<Row>& rows) {
  for (const Row& row : rows)
    fmt::print("{:>5}  {:<38} {:>10} {:>9.4f} {:>9.4f} {:>9.3f} {:>7.1f}% {:>8.1f}%\n", ranks, row.way,
               format_size(row.out), row.simulated, row.measured, row.measured / row.simulated,
               100 * rows.front().measured / row.measured, 100 * rows.front().simulated / row.simulated);
  std::fflush(stdout);
}

// ---- modelled devices

class Modelled {
 public:
  Modelled(const char* model, std::int64_t batch, int ranks)
      : ranks_(ranks), rates_(find_device("p100").rates()), cost_(rates_) {
    const double rate = find_device("p100").link_alone;
    const TreeLink link{rate, rate, 1, 0};
    constexpr double kNoTime = 1e15;
    topology_ = {
        "one switch",
        {{.network = {},
          .memory_bytes_per_second = kNoTime,
          .peer_to_peer = true,
          .switches = {{link, std::vector<DeviceSlot>(static_cast<std::size_t>(ranks), DeviceSlot{.link = link})}}}}};
    StepOptions options;
    options.batch = batch;
    options.ranks.count = ranks;
    step_ = build_step(std::make_shared<const Network>(make_model(model)), options);
    // Without workspaces: those of the fastest algorithms take more than all that could be swapped, and nothing would
    // have to leave.
    request_ = {.step = &step_,
                .plan = [this](const Policy& policy, const PlannerOptions& asked,
                               const CostModel& times) { return make_plan(policy, step_, times, asked); },
                .cost = &cost_,
                .topology = &topology_,
                .road = ReduceRoad::cpu};
    slowdown_ = kStepSeconds / ideal_seconds(step_, cost_);
  }
  Modelled(const Modelled&) = delete;
  Modelled& operator=(const Modelled&) = delete;

  // Half way between what all and no swaps of vdnn-conv take.
  [[nodiscard]] Bytes budget() const {
    const auto floor_with = [&](std::int32_t layers) {
      PlannerOptions options = asked({});
      options.policy.set<StaggerOptions>().layers = layers;
      return make_plan(vdnn(), step_, cost_, options).floor[Tier::device];
    };
    return Bytes((floor_with(0).count() + floor_with(-1).count()) / 2);
  }

  [[nodiscard]] Row unswapped() const { return row_of("no swaps", plan_staggered(request_, vdnn(), asked({}), 0)); }
  [[nodiscard]] Row plain(Bytes budget) const {
    return row_of("vdnn-conv", plan_ranks(request_, vdnn(), asked(budget), Stagger::none));
  }
  [[nodiscard]] Row staggered(Bytes budget, Stagger stagger) const {
    RankPlans set = plan_ranks(request_, vdnn(), asked(budget), stagger);
    return row_of(fmt::format("{}: {}", stagger_name(stagger), set.way), set);
  }

  [[nodiscard]] double slowdown() const { return slowdown_; }

 private:
  static const Policy& vdnn() { return find_policy("vdnn-conv"); }
  [[nodiscard]] static PlannerOptions asked(const std::optional<Bytes>& budget) {
    PlannerOptions options = within(budget);
    options.parameters = Parameters::device;
    return options;
  }

  [[nodiscard]] Row row_of(std::string name, const RankPlans& set) const {
    if (!set.fits()) throw Error("{} does not fit", name);
    Row row{std::move(name), {}, set.seconds, measure(set) / slowdown_};
    for (const auto& result : set.of) row.out = std::max(row.out, summarize(*result->plan).offloaded_bytes);
    return row;
  }

  [[nodiscard]] double measure(const RankPlans& set) const {
    SharedLink link(find_device("p100").link_alone / slowdown_);
    std::vector<double> found(static_cast<std::size_t>(ranks_));
    on_thread_ranks(ranks_, [&](Communicator& ranks) {
      const auto rank = static_cast<std::size_t>(ranks.rank());
      const Plan& plan = *set.of[rank]->plan;
      SleepingBackend backend(cost_, slowdown_);
      LinkedSums sums(ranks, link);
      Arena arena(backend, summarize(plan).peak[Tier::device]);
      const std::unique_ptr<Executor> executor =
          make_executor(plan, backend, arena, {.guard = false, .shared_link = &link, .collectives = &sums});
      found[rank] = fastest_step(ranks, kSteps, [&] { executor->run({.global_batch = 1}); });
    });
    return *std::ranges::max_element(found);
  }

  int ranks_;
  Device rates_;
  RooflineModel cost_;
  Topology topology_;
  Step step_;
  RankRequest request_;
  double slowdown_ = 1;
};

void compare_modelled() {
  constexpr std::int64_t kBatch = 64;
  fmt::print("vgg16, batch {} each, on modelled P100 at one link of {:.1f} GB/s; seconds of a step\n", kBatch,
             find_device("p100").link_alone / 1e9);
  print_head();
  for (const int ranks : {2, 4}) {
    const Modelled bench("vgg16", kBatch, ranks);
    const Bytes budget = bench.budget();
    print_rows(ranks, {bench.unswapped(), bench.plain(budget), bench.staggered(budget, Stagger::paper),
                       bench.staggered(budget, Stagger::automatic)});
    fmt::print("       within {}, {:.1f} times slower than modelled\n", format_size(budget), bench.slowdown());
  }
}

// ---- one real GPU

struct Real {
  const char* backend = "cuda";
  const char* model = "vgg16";
  std::int64_t batch = 32;
  int ranks = 2;
};

constexpr int kRealSteps = 24;  // the first ones correct triggers

Row run_sessions(const Real& given, std::string name, const char* policy, const std::optional<Bytes>& budget,
                 Stagger stagger) {
  const auto network = std::make_shared<const Network>(make_model(given.model));
  const DatasetPtr data = synthetic({.sample = network->input_sample(), .size = given.batch * given.ranks});
  std::vector<double> found(static_cast<std::size_t>(given.ranks));
  std::vector<Plan> plans(found.size());
  Row row{.way = std::move(name)};
  on_thread_ranks(given.ranks, [&](Communicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    SessionOptions options;
    options.backend = given.backend;
    options.policy = policy;
    options.planner.memory[Tier::device] = budget;
    options.planner.parameters = Parameters::device;
    options.ranks.communicator = &ranks;
    options.ranks.road = SumRoad::host;
    options.ranks.stagger = stagger;
    const StepVariant variant{given.batch, true};
    auto opened = Session::open(network, {variant}, options);
    if (std::holds_alternative<PlanResult>(opened)) throw Error("{} does not fit", row.way);
    Session& session = *std::get<std::unique_ptr<Session>>(opened);
    std::vector<std::int64_t> samples(static_cast<std::size_t>(given.batch));
    std::iota(samples.begin(), samples.end(), ranks.rank() * given.batch);
    found[rank] = fastest_step(ranks, kRealSteps, [&] { (void)session.run(variant, *data, samples, 1e-4); });
    plans[rank] = session.plan(variant);
    const RankLinks links = find_links(session.ranks(), session.backend(), session.cost());
    ranks.barrier();
    if (rank != 0) return;
    if (!session.swaps().empty()) row.way += ": " + session.swaps();
    std::vector<const Plan*> by_device(plans.size());
    for (std::size_t r = 0; r < plans.size(); ++r) by_device[links.device_of[r]] = &plans[r];
    const CostModel* const cost = &session.cost();
    row.simulated = seconds_of(simulate_together(by_device, {&cost, 1}, links.topology, ReduceRoad::cpu));
  });
  row.measured = *std::ranges::max_element(found);
  for (const Plan& plan : plans) row.out = std::max(row.out, summarize(plan).offloaded_bytes);
  return row;
}

void compare_real(const Real& given) {
  SessionOptions options;
  options.backend = given.backend;
  options.policy = "vdnn-conv";
  options.planner.parameters = Parameters::device;
  const std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(given.ranks);
  options.ranks.communicator = ranks.front().get();  // only how many there are counts
  const auto network = std::make_shared<const Network>(make_model(given.model));
  const auto floor_with = [&](std::int32_t layers) {
    options.planner.policy.set<StaggerOptions>().layers = layers;
    return plan_network(network, {given.batch, true}, options).floor[Tier::device];
  };
  const Bytes budget((floor_with(0).count() + floor_with(-1).count()) / 2);
  fmt::print(
      "{}, batch {} each, {} ranks on one GPU: {}\nwithin {} each; seconds of a step. The simulator has a GPU for "
      "each rank, so ratios of measured to simulated are not near 1\n",
      given.model, given.batch, given.ranks, make_backend(given.backend)->description(), format_size(budget));
  print_head();
  print_rows(given.ranks, {run_sessions(given, "no swaps", "liveness", {}, Stagger::none),
                           run_sessions(given, "vdnn-conv", "vdnn-conv", budget, Stagger::none),
                           run_sessions(given, "paper", "vdnn-conv", budget, Stagger::paper),
                           run_sessions(given, "auto", "vdnn-conv", budget, Stagger::automatic)});
}

}  // namespace
}  // namespace tide

int main(int count, char** arguments) {
  try {
    if (count == 1) {
      tide::compare_modelled();
    } else if (count >= 3 && std::strcmp(arguments[1], "--backend") == 0) {
      tide::Real given{.backend = arguments[2]};
      if (count > 3) given.model = arguments[3];
      if (count > 4) given.batch = std::atoll(arguments[4]);
      if (count > 5) given.ranks = std::atoi(arguments[5]);
      if (given.batch < 1 || given.ranks < 1) throw tide::Error("batch and ranks are numbers above 0");
      tide::compare_real(given);
    } else {
      throw tide::Error("usage: swap_contention [--backend NAME [MODEL [BATCH [RANKS]]]]");
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "swap_contention: {}\n", error.what());
    return 1;
  }
}
