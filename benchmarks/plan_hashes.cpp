// One line per plan: a number that follows from its ops, waits, addresses and algorithms, over models, policies,
// budgets and devices, whole batches and cut ones. Two versions of the planner make the same plans where `diff` finds
// nothing:
//
//   plan_hashes > before;  (change the planner);  plan_hashes | diff before -
#include <cstdio>

#include "base/hash.h"
#include "cost/device_model.h"
#include "cost/devices.h"
#include "planner/policies/modnn.h"
#include "planner/policies/recursive.h"
#include "planner/policies/sublinear.h"
#include "planner/policies/superneurons.h"
#include "planner/policy.h"
#include "planner/search/search.h"
#include "planner/vdnn/vdnn.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

class Hash {
 public:
  void add(std::int64_t number) {
    for (int byte = 0; byte < 8; ++byte) hash_.add_byte(static_cast<std::uint8_t>(number >> (8 * byte)));
  }
  [[nodiscard]] std::uint64_t value() const { return hash_.value(); }

 private:
  Fnv hash_;
};

void add(Hash& hash, const Op& op) {
  hash.add(op.is_run() ? 0 : 1);
  hash.add(static_cast<int>(op.lane));
  if (op.is_run()) {
    hash.add(op.run().task.value());
    hash.add(op.run().algorithm);
    hash.add(op.run().workspace.count());
  } else {
    hash.add(op.copy().storage.value());
    hash.add(static_cast<int>(op.copy().from));
    hash.add(static_cast<int>(op.copy().to));
  }
  hash.add(static_cast<std::int64_t>(op.waits.size()));
  for (const std::int32_t wait : op.waits) hash.add(wait);
}

std::uint64_t hash_of(const Plan& plan) {
  Hash hash;
  for (const Phase& phase : plan.phases) {
    hash.add(phase.repeat);
    hash.add(phase.step->options.batch);
    hash.add(static_cast<std::int64_t>(phase.step->tasks.size()));
    for (const Op& op : phase.ops) add(hash, op);
    for (const Residency& r : phase.residencies) {
      hash.add(r.storage.value());
      hash.add(static_cast<int>(r.tier));
      hash.add(r.first);
      hash.add(r.last);
      hash.add(r.address.count());
    }
  }
  return hash.value();
}

// Where parameters rest is asked for by name.
const PlannerOptions kOnDevice{.parameters = Parameters::device};

struct Job {
  const char* model;
  std::int64_t batch;
  const char* device;
  Rules rules = Rules::minimal;
};

class Line {
 public:
  explicit Line(const Job& job)
      : job_(job),
        network_(std::make_shared<Network>(make_model(job.model))),
        device_(find_device(job.device).rates()),
        cost_(device_) {
    peak_ = search_plan(find_policy("liveness"), build(), cost_, {}).floor[Tier::device];
  }

  // A budget in percent of what liveness takes; 0: none.
  void print(const char* policy, int percent, const char* what = "", const PlannerOptions& given = kOnDevice) const {
    PlannerOptions options = given;
    if (percent > 0) options.memory[Tier::device] = Bytes(peak_.count() / 100 * percent / kAlignment * kAlignment);
    const PlanResult result = search_plan(find_policy(policy), build(), cost_, options);
    fmt::print("{:<14} {:>4} {:<8} {:<13} {:>3}%{:<22} ", job_.model, job_.batch, job_.device, policy, percent, what);
    if (result.plan)
      fmt::print("{:016x} floor {}\n", hash_of(*result.plan), result.floor[Tier::device].count());
    else
      fmt::print("infeasible       floor {} at {}\n", result.floor[Tier::device].count(), result.bottleneck_task);
    std::fflush(stdout);
  }

 private:
  [[nodiscard]] BuildStep build() const {
    return [this](const StepChoice& choice) {
      StepOptions options{.batch = job_.batch, .rules = job_.rules, .fuse = job_.rules == Rules::minimal};
      choice.apply_to(options);
      Step step = build_step(network_, options);
      annotate_for(step, device_);
      return step;
    };
  }

  Job job_;
  NetworkPtr network_;
  Device device_;
  DeviceModel cost_;
  Bytes peak_;
};

void print_every_policy(const Job& job, std::initializer_list<int> percents) {
  const Line line(job);
  for (const int percent : percents)
    for (const Policy& policy : policies()) line.print(policy.name.data(), percent);
}

void print_options(const Job& job) {
  const Line line(job);
  for (const Recompute recompute : {Recompute::none, Recompute::speed, Recompute::memory}) {
    PlannerOptions options = kOnDevice;
    options.policy.set<SuperneuronsOptions>().recompute = recompute;
    line.print("superneurons", 60, recompute_name(recompute).data(), options);
    options.policy.set<SuperneuronsOptions>().cache = false;
    line.print("superneurons", 70, " cache off", options);
  }
  PlannerOptions options = kOnDevice;
  options.policy.set<SuperneuronsOptions>().replacement = Replacement::lru;
  line.print("superneurons", 60, " lru", options);
  options = kOnDevice;
  options.policy.set<SuperneuronsOptions>().checkpoints = {LayerKind::convolution, LayerKind::add};
  line.print("offload", 80, " checkpoints", options);
  line.print("superneurons", 50, " checkpoints", options);
  options = kOnDevice;
  options.policy.set<RecursiveOptions>().kept = 3;
  line.print("recursive", 50, " recursion 3", options);
  options = kOnDevice;
  options.policy.set<SublinearOptions>().weigh_by_cost = false;
  line.print("sublinear", 60, " bytes", options);
  options = kOnDevice;
  options.policy.set<VdnnOptions>().algorithms = Algorithms::smallest;
  line.print("vdnn-all", 70, " smallest", options);
  options = kOnDevice;
  options.policy.set<ModnnOptions>().one_lane = true;
  line.print("modnn", 70, " one lane", options);
  options = kOnDevice;
  options.in_place = false;
  line.print("auto", 70, " not in place", options);
  for (const Parameters parameters : {Parameters::host, Parameters::automatic}) {
    options = kOnDevice;
    options.parameters = parameters;
    for (const char* policy : {"offload", "superneurons", "auto"})
      line.print(policy, 50, parameters == Parameters::host ? " host" : " automatic", options);
  }
  options = kOnDevice;
  options.memory[Tier::host] = Bytes(std::int64_t{20} << 20);
  line.print("superneurons", 60, " little host memory", options);
  options.memory[Tier::disk] = Bytes(std::int64_t{1} << 36);
  for (const char* policy : {"offload", "superneurons", "auto", "modnn", "vdnn-conv"})
    line.print(policy, 70, " and a disk", options);
}

void print_cut(const Job& job) {
  const Line line(job);
  for (const bool exact : {false, true}) {
    PlannerOptions options = kOnDevice;
    options.batch = SubBatches{.allowed = Numerics::changed, .exact_batch_norm = exact};
    for (const char* policy : {"auto", "modnn", "vdnn+", "superneurons"})
      for (const int percent : {70, 30}) line.print(policy, percent, exact ? " exact" : " changed", options);
    std::get<SubBatches>(options.batch).samples = 3;
    for (const char* policy : {"auto", "liveness", "sublinear", "superneurons"})
      line.print(policy, 40, exact ? " exact by 3" : " changed by 3", options);
  }
}

void print_all() {
  print_every_policy({"resnet50", 32, "h200"}, {0, 80, 45, 25});
  print_every_policy({"alexnet", 64, "titan-x"}, {95, 60});
  print_every_policy({"vgg16", 16, "k40m"}, {70, 40});
  print_every_policy({"densenet121", 8, "titan-x"}, {60});
  print_every_policy({"inception-v3", 8, "h200"}, {50});
  print_every_policy({"lstm:2,128,16", 16, "h200"}, {70});
  print_every_policy({"lenet", 32, "generic-cpu"}, {90, 40});
  print_every_policy({"resnet50", 16, "k40c", Rules::superneurons}, {0, 50});
  print_every_policy({"preresnet:164", 32, "h200"}, {40});
  print_options({"resnet18", 32, "titan-x"});
  print_options({"resnet18", 16, "h200", Rules::superneurons});
  print_cut({"resnet18", 8, "h200"});
  print_cut({"alexnet", 8, "k40c"});
  for (const char* model : {"resnet101", "vgg19", "inception-v4", "resnet152", "preresnet:1001", "fcn"})
    for (const char* device : {"h200", "titan-x"})
      for (const int percent : {66, 33}) Line({model, 16, device}).print("auto", percent);
}

}  // namespace
}  // namespace tide

int main() {
  tide::print_all();
  return 0;
}
