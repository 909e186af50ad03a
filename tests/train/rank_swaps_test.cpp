// Ranks whose devices share links: who is in which group, what all agree to swap, and that it changes no bit of the
// model, whatever is corrected on the way.
#include "train/rank_swaps.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "cluster/threads.h"
#include "plan/check_together.h"
#include "train/plan_network.h"
#include "train/small_session.h"

namespace tide {
namespace {

// Convolutions whose inputs are worth swapping.
NetworkPtr swapping_network() {
  Builder net("swapping");
  Value x = net.input({1, 1, 8, 8}, "in");
  for (int i = 0; i < 6; ++i)
    x = net.relu(net.convolution(x, {.channels = 6, .window = Window::square(3, 1, 1)}, fmt::format("conv{}", i)),
                 fmt::format("relu{}", i));
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 10}, "fc"), {}, "softmax");
  return std::make_shared<const Network>(std::move(net).build());
}

struct SwapJob {
  NetworkPtr network = swapping_network();
  SessionOptions options = test::session_options();
  std::vector<Bytes> budgets = {};  // by rank; none: no limit
  SharedLink* link = nullptr;
  int steps = 4;
};

struct SwapResult {
  std::uint64_t weights = 0;
  std::string swaps;
  Plan plan;
  int corrections = 0;
  bool tuned = false;
  Bytes high_water = {};
};

constexpr std::int64_t kBatch = 4;

SwapJob vdnn_job() {
  SwapJob job;
  job.options.policy = "vdnn-conv";
  job.options.executor.guard = false;  // lanes side by side
  return job;
}

std::vector<SwapResult> trained(int count, const SwapJob& job, std::vector<std::string> hosts = {}) {
  std::vector<SwapResult> results(static_cast<std::size_t>(count));
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(count, std::move(hosts));
  const DatasetPtr data = test::first_digits(kBatch * count);
  on_ranks(
      ranks,
      [&](Communicator& communicator) {
        const auto rank = static_cast<std::size_t>(communicator.rank());
        SessionOptions options = job.options;
        options.ranks.communicator = &communicator;
        options.ranks.bucket = Bytes(1000);
        options.executor.shared_link = job.link;
        if (!job.budgets.empty()) options.planner.memory[Tier::device] = job.budgets[rank];
        const test::SessionPtr session = test::open_session(job.network, {{kBatch, true}}, options);
        std::vector<std::int64_t> samples(kBatch);
        std::iota(samples.begin(), samples.end(), communicator.rank() * kBatch);
        for (int step = 0; step < job.steps; ++step) (void)session->run({kBatch, true}, *data, samples, 0.05);
        results[rank] = {session->weights_hash(),
                         session->swaps(),
                         session->plan({kBatch, true}),
                         session->tuning() != nullptr ? session->tuning()->corrections() : 0,
                         session->tuning() != nullptr && session->tuning()->is_done(),
                         session->executor({kBatch, true}).high_water()};
      },
      true);
  return results;
}

// What a rank needs to swap nothing, and to swap all.
std::pair<Bytes, Bytes> needs(const SwapJob& job) {
  const auto ranks = make_thread_ranks(2);
  const auto floor_with = [&](std::int32_t layers) {
    SessionOptions options = job.options;
    options.ranks = {.communicator = ranks[0].get(), .bucket = Bytes(1000)};
    options.planner.policy.set<StaggerOptions>().layers = layers;
    return plan_network(job.network, {kBatch, true}, options).floor[Tier::device];
  };
  return {floor_with(0), floor_with(-1)};
}

std::set<StorageId> swapped_by(const Plan& plan) {
  std::set<StorageId> found;
  for (const Op& op : plan.phases.front().ops)
    if (op.is_copy() && op.copy().to == Tier::host) found.insert(op.copy().storage);
  return found;
}

void expect_together(const std::vector<SwapResult>& results) {
  std::vector<const Plan*> plans;
  for (const SwapResult& result : results) {
    plans.push_back(&result.plan);
    EXPECT_EQ(result.weights, results[0].weights);
    EXPECT_EQ(result.swaps, results[0].swaps);
  }
  for (const Finding& finding : check_together(plans)) ADD_FAILURE() << finding.text;
}

TEST(RankLinks, AreTheHostsMemoryWhereThereIsNoOther) {
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(5, {"a", "b", "a", "b", "a"});
  on_ranks(ranks, [](Communicator& communicator) {
    const std::unique_ptr<Backend> backend = make_backend("null");
    const RooflineModel cost(generic_cpu());
    RankSettings settings{.communicator = &communicator};
    const RankLinks links = find_links(settings, *backend, cost);
    EXPECT_EQ(links.device_of, (std::vector<std::size_t>{0, 3, 1, 4, 2}));
    std::vector<std::int32_t> places;
    for (int rank = 0; rank < 5; ++rank) places.push_back(links.place_of(rank));
    EXPECT_EQ(places, (std::vector<std::int32_t>{0, 0, 1, 1, 2}));
    EXPECT_EQ(largest_group(links.topology), 3U);
    EXPECT_NO_THROW(require_valid(links.topology, "found"));
    // A topology that is given goes before.
    settings.topology = find_topology("8xh100-nvlink");
    const RankLinks given = find_links(settings, *backend, cost);
    EXPECT_EQ(device_count(given.topology), 5U);
    EXPECT_EQ(given.place_of(4), 0);
    EXPECT_EQ(given.place_of(3), 1);
  });
}

TEST(RankWays, AreToldToOthers) {
  const std::vector<RankWay> ways{{.name = "none", .policy = "vdnn-conv"},
                                  {.name = "a share of the link", .policy = "auto", .link_share = 1.0 / 3},
                                  {.name = "paper with triggers, 2 of 5 layers",
                                   .policy = "vdnn-all",
                                   .layers = 2,
                                   .only = {{0, 2}, {1}, {}},
                                   .early = {{1, kNoTrigger}, {}, {0, 3}}}};
  EXPECT_EQ(ways_from_text(ways_to_text(ways)), ways);
  EXPECT_TRUE(ways_from_text("").empty());
}

// Over one throttled link, with every way to swap.
TEST(RankSwaps, ChangeNoBit) {
  SwapJob job = vdnn_job();
  const auto [roomy, tight] = needs(job);
  ASSERT_LT(tight, roomy);
  for (const int count : {2, 4}) {
    const std::vector<SwapResult> unswapped = trained(count, {.options = test::session_options()});
    EXPECT_TRUE(swapped_by(unswapped[0].plan).empty());
    SharedLink link(20e6);
    job.link = &link;
    job.budgets.assign(static_cast<std::size_t>(count), tight);
    for (const Stagger stagger : {Stagger::none, Stagger::paper, Stagger::automatic}) {
      job.options.ranks.stagger = stagger;
      const std::vector<SwapResult> swapped = trained(count, job);
      expect_together(swapped);
      EXPECT_EQ(swapped[0].weights, unswapped[0].weights) << stagger_name(stagger) << " on " << count;
      EXPECT_EQ(swapped[0].swaps.empty(), stagger == Stagger::none);
      EXPECT_TRUE(stagger == Stagger::automatic || !swapped_by(swapped[0].plan).empty())
          << swapped[0].swaps << " on " << count;
    }
  }
}

// The fewest layers with which each rank fits are those of the one with the least memory.
TEST(RankSwaps, OfThePaperAreAsManyOnEveryRank) {
  SwapJob job = vdnn_job();
  const auto [roomy, tight] = needs(job);
  job.options.ranks.stagger = Stagger::paper;
  job.steps = 1;
  job.budgets = {roomy, roomy};
  const std::vector<SwapResult> none = trained(2, job);
  EXPECT_TRUE(none[0].swaps.starts_with("paper, 0 of ")) << none[0].swaps;
  job.budgets = {roomy, tight};
  const std::vector<SwapResult> some = trained(2, job);
  expect_together(some);
  EXPECT_FALSE(some[0].swaps.starts_with("paper, 0 of ")) << some[0].swaps;
  EXPECT_FALSE(swapped_by(some[0].plan).empty());
  // In turn, not the same; unless it takes more than half of all layers, which both then swap (vdnn/swaps.h). How many
  // it takes depends on the backend.
  int layers = 0, all = 0;
  ASSERT_EQ(std::sscanf(some[0].swaps.c_str() + some[0].swaps.rfind(", ") + 2, "%d of %d", &layers, &all), 2);
  if (all / layers > 1)
    for (const StorageId storage : swapped_by(some[0].plan)) EXPECT_FALSE(swapped_by(some[1].plan).contains(storage));
  else
    EXPECT_EQ(swapped_by(some[0].plan), swapped_by(some[1].plan));
  // Each at the first place of its own host's group: the same.
  const std::vector<SwapResult> apart = trained(2, job, {"alpha", "beta"});
  EXPECT_EQ(swapped_by(apart[0].plan), swapped_by(apart[1].plan));
  job.options.policy = "liveness";
  EXPECT_NE(test::error_of([&] { (void)trained(2, job); }).find("liveness"), std::string::npos);
}

// Whatever measured steps ask for, the model stays the same, and so does the memory.
TEST(RankSwaps, AreCorrectedWithoutChangingABit) {
  SwapJob job = vdnn_job();
  const auto [roomy, tight] = needs(job);
  const int steps = 4 * (TriggerTuning::kMostCorrections + 2);
  const std::vector<SwapResult> unswapped = trained(2, {.options = test::session_options(), .steps = steps});
  // Times of a link that is far faster than the real one: triggers are late.
  SharedLink link(2e6);
  job.link = &link;
  job.steps = steps;
  job.options.ranks.stagger = Stagger::paper;
  const Bytes budget((tight.count() * 3 + roomy.count()) / 4);
  job.budgets = {budget, budget};
  const std::vector<SwapResult> corrected = trained(2, job);
  expect_together(corrected);
  EXPECT_EQ(corrected[0].weights, unswapped[0].weights);
  EXPECT_NE(corrected[0].swaps.find("triggers"), std::string::npos) << corrected[0].swaps;
  for (const SwapResult& result : corrected) {
    EXPECT_TRUE(result.tuned);
    EXPECT_GE(result.corrections, 1);
    EXPECT_EQ(result.corrections, corrected[0].corrections);
    EXPECT_LE(summarize(result.plan).peak[Tier::device], budget);
    EXPECT_EQ(summarize(result.plan).peak[Tier::device], result.high_water);
  }
}

// What it does, by times written by hand.
struct HandTuning {
  std::vector<std::string> done;
  bool has_corrections = true;
  TriggerTuning tuning{TuningCalls{.longest = [](double own) { return own; },
                                   .correct =
                                       [this] {
                                         if (has_corrections) done.emplace_back("correct");
                                         return has_corrections;
                                       },
                                   .go_back = [this] { done.emplace_back("back"); },
                                   .finish = [this] { done.emplace_back("finish"); }}};
  void steps(double seconds) {
    tuning.after_step(100);  // the first of a plan is not measured
    for (std::size_t i = 0; i < TriggerTuning::kMeasured; ++i) tuning.after_step(seconds + static_cast<double>(i));
  }
};

TEST(TriggerTuning, KeepsWhatIsNotSlower) {
  using Words = std::vector<std::string>;
  HandTuning slower;
  slower.steps(5);
  slower.steps(4);
  slower.steps(4.5);
  slower.steps(1);  // it is over
  EXPECT_EQ(slower.done, (Words{"correct", "correct", "back", "finish"}));
  EXPECT_EQ(slower.tuning.kept(), 1);
  EXPECT_TRUE(slower.tuning.is_done());
  HandTuning ever;
  for (int i = 0; i < 9; ++i) ever.steps(9 - i);
  EXPECT_EQ(ever.done, (Words{"correct", "correct", "correct", "finish"}));
  EXPECT_EQ(ever.tuning.kept(), TriggerTuning::kMostCorrections);
  HandTuning content;
  content.has_corrections = false;
  content.steps(5);
  EXPECT_EQ(content.done, Words{"finish"});
  EXPECT_EQ(content.tuning.corrections(), 0);
}

}  // namespace
}  // namespace tide
