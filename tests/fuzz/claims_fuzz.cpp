// What is promised about plans, on random networks, budgets and devices:
//   - auto is never slower than another policy, and fits wherever one does
//   - auto is never slower within a larger budget
//   - a floor is enough, a byte less is not, and it is the same at every budget
//   - floors that are said to grow with the batch do, so that `tide fit` has the largest
//
//   claims_fuzz COUNT [FIRST_SEED]
#include <cstdlib>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/summary.h"
#include "planner/policies/superneurons.h"
#include "planner/policy.h"
#include "planner/search/search.h"
#include "step/build.h"
#include "support/random_network.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

struct Counts {
  int checks = 0, violations = 0;
};

class Case {
 public:
  Case(std::uint32_t seed, Counts& counts)
      : seed_(seed), counts_(counts), random_(seed), device_(any_device().rates()), cost_(device_) {
    network_ = any_network();
    options_.batch = 1 + static_cast<std::int64_t>(random_() % 64);
    options_.fuse = random_() % 4 != 0;
    options_.optimizer.kind = static_cast<OptimizerKind>(random_() % 5);
    planner_.parameters = random_() % 3 == 0 ? Parameters::automatic : Parameters::device;
    if (random_() % 3 == 0) {
      auto& superneurons = planner_.policy.set<SuperneuronsOptions>();
      superneurons.recompute = static_cast<Recompute>(random_() % 4);
      superneurons.cache = random_() % 2 == 0;
      superneurons.replacement = static_cast<Replacement>(random_() % 4);
    }
    if (random_() % 4 == 0) planner_.memory[Tier::host] = Bytes(1 + static_cast<std::int64_t>(random_() % (4U << 20)));
  }

  void check() {
    const PlanResult free = plan("auto", std::nullopt);
    const Bytes floor = free.floor[Tier::device];
    const Bytes peak = std::max(summarize(*free.plan).peak[Tier::device], floor + Bytes(kAlignment));
    const auto between = [&] {
      const double share = std::uniform_real_distribution(0.0, 1.02)(random_);
      const auto room = static_cast<double>((peak - floor).count());
      return floor + Bytes(static_cast<std::int64_t>(room * share * share));  // more of them near the floor
    };
    Bytes small = between(), large = between();
    if (large < small) std::swap(small, large);
    const PlanResult less = check_policies(small, free.floor[Tier::device]);
    const PlanResult more = plan("auto", large);
    if (less.plan) {
      expect(more.plan.has_value(), "auto", "fits less memory, but not more");
      expect(!more.plan || *more.seconds <= *less.seconds, "auto",
             fmt::format("{:.6g} s within {} bytes, {:.6g} s within {}", *less.seconds, small.count(),
                         more.plan ? *more.seconds : 0, large.count()));
    }
    check_floor(policies()[random_() % policies().size()]);
    check_growth();
  }

 private:
  const DeviceSheet& any_device() {
    constexpr std::array kNames{"h200", "titan-x", "k40c", "k40m", "generic-cpu"};
    return find_device(kNames[random_() % kNames.size()]);
  }
  NetworkPtr any_network() {
    constexpr std::array kModels{"lenet", "digits", "resnet:1,1,1,1@10", "resnet:2,1,1,2@10", "vgg16@10"};
    const auto number = random_() % (4 * kModels.size());
    if (number >= kModels.size()) return testing_support::random_network(seed_);
    const bool small = std::string_view(kModels[number]).find('@') != std::string_view::npos;
    return std::make_shared<const Network>(small ? make_model(kModels[number], Shape{1, 3, 32, 32})
                                                 : make_model(kModels[number]));
  }

  void expect(bool holds, std::string_view policy, std::string_view what) {
    ++counts_.checks;
    if (holds) return;
    ++counts_.violations;
    fmt::print(stderr, "seed {}, {}: {}\n", seed_, policy, what);
  }

  BuildStep builder(std::int64_t batch) const {
    return [this, batch](const StepChoice& choice) {
      StepOptions options = options_;
      options.batch = batch;
      choice.apply_to(options);
      Step step = build_step(network_, options);
      annotate_for(step, device_);
      return step;
    };
  }
  PlanResult plan(std::string_view policy, const std::optional<Bytes>& memory) {
    PlannerOptions planner = planner_;
    planner.memory[Tier::device] = memory;
    return search_plan(find_policy(policy), builder(options_.batch), cost_, planner);
  }

  PlanResult check_policies(Bytes memory, Bytes floor) {
    PlanResult best = plan("auto", memory);
    expect(best.floor[Tier::device] == floor, "auto", "another floor within a budget than without");
    for (const Policy& policy : policies()) {
      if (policy.tries_all_others) continue;
      const PlanResult other = plan(policy.name, memory);
      if (!other.plan) continue;
      expect(best.plan.has_value(), policy.name, fmt::format("fits {} bytes, auto does not", memory.count()));
      if (best.plan)
        expect(*best.seconds <= *other.seconds, policy.name,
               fmt::format("{:.6g} s within {} bytes, auto {:.6g} s", *other.seconds, memory.count(), *best.seconds));
    }
    return best;
  }

  void check_floor(const Policy& policy) {
    const PlanResult none = plan(policy.name, Bytes());
    const Bytes floor = none.floor[Tier::device];
    const PlanResult at_floor = plan(policy.name, floor);
    // With little host memory, that may be what is short.
    expect(at_floor.plan || at_floor.short_of != Tier::device, policy.name,
           fmt::format("names {} bytes, and these do not do", floor.count()));
    expect(at_floor.floor[Tier::device] == floor, policy.name, "another floor at its floor");
    expect(!plan(policy.name, floor - Bytes(1)).plan, policy.name, "a byte less than the floor does");
    expect(plan(policy.name, std::nullopt).floor[Tier::device] == floor, policy.name, "another floor without a budget");
  }

  // Of batches side by side and far from each other.
  void check_growth() {
    const auto any = [&] { return 1 + static_cast<std::int64_t>(random_() % 300); };
    std::vector<std::int64_t> batches{any(), any(), any()};
    batches.push_back(batches.front() + 1);
    std::ranges::sort(batches);
    for (const Policy& policy : policies()) {
      if (!policy.floor_grows || !policy.floor_grows(planner_.policy)) continue;
      Bytes before;
      for (const std::int64_t batch : batches) {
        const Bytes floor = search_floor(policy, builder(batch), cost_, planner_).floor[Tier::device];
        expect(floor >= before, policy.name,
               fmt::format("batch {} needs {} bytes, a smaller one {}", batch, floor.count(), before.count()));
        before = floor;
      }
    }
  }

  std::uint32_t seed_;
  Counts& counts_;
  std::mt19937 random_;
  Device device_;
  DeviceModel cost_;
  NetworkPtr network_;
  StepOptions options_;
  PlannerOptions planner_;
};

int run(std::uint32_t count, std::uint32_t first) {
  Counts counts;
  for (std::uint32_t seed = first; seed < first + count; ++seed) Case(seed, counts).check();
  fmt::print("{} networks, {} checks, {} violations\n", count, counts.checks, counts.violations);
  return counts.violations == 0 && counts.checks > 0 ? 0 : 1;
}

}  // namespace
}  // namespace tide

int main(int argc, char** argv) {
  const auto number = [&](int at, int otherwise) {
    return static_cast<std::uint32_t>(argc > at ? std::atoi(argv[at]) : otherwise);
  };
  return tide::run(number(1, 200), number(2, 0));
}
