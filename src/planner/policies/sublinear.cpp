// Chen et al., "Training Deep Nets with Sublinear Memory Cost": the outputs between segments are
// kept, everything within them is dropped and run again, segment by segment (its section 4.3).
#include "planner/policies/sublinear.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "cost/algorithms.h"
#include "planner/policy.h"
#include "planner/replay/mirror_search.h"
#include "planner/replay/split_points.h"

namespace tide {
namespace {

struct Split {
  MirrorCounts counts;
  double kept = 0, largest = 0;  // x and y of Algorithm 3: bytes between segments, bytes of one
};

// Algorithm 3: a segment ends at the first point behind `budget` bytes, or a little later where
// less is waiting. The last segment is not dropped: its backward tasks come at once.
Split split_by(const MirrorSearch& search, const SplitPoints& points, std::int64_t budget) {
  constexpr std::int64_t kLookAhead = 4;  // a quarter of the budget
  Split split{search.counts(1)};
  std::vector<Cut> cuts;
  std::int64_t begin = 0;
  for (;;) {
    const std::size_t first = points.first_above(begin + budget);
    if (first == points.points().size()) break;
    const std::size_t last = std::max(points.first_above(begin + budget + budget / kLookAhead), first + 1);
    const SplitPoint& point = points.points()[points.narrowest(first, last)];
    cuts.push_back({point.position, 0});
    split.largest = std::max(split.largest, static_cast<double>(point.before - begin));
    begin = point.before;
  }
  split.largest = std::max(split.largest, static_cast<double>(points.total() - begin));
  const std::size_t tail = cuts.empty() ? 0 : static_cast<std::size_t>(cuts.back().position) + 1;
  std::fill(split.counts.begin() + static_cast<std::ptrdiff_t>(tail), split.counts.end(), 0);
  split.kept = static_cast<double>(points.keep_at(cuts, split.counts));
  return split;
}

// The counts given by the user, of the network and of the options; empty where there are none.
MirrorCounts counts_of_layers(const Step& step, const SublinearOptions& options) {
  std::vector<std::int32_t> layers(step.layer_names.size(), 0);
  for (std::size_t l = 0; step.network && l < layers.size(); ++l) layers[l] = step.network->layers[l].mirror;
  for (const MirrorCount& given : options.mirror) {
    const auto it = std::find(step.layer_names.begin(), step.layer_names.end(), given.layer);
    if (it == step.layer_names.end())
      throw Error(
          "a mirror count is given for '{}', and this step has no such layer; see tide summary, and --no-fuse for "
          "layers "
          "that are fused into others",
          given.layer);
    layers[static_cast<std::size_t>(it - step.layer_names.begin())] = given.count;
  }
  if (std::all_of(layers.begin(), layers.end(), [](std::int32_t count) { return count == 0; }) &&
      options.mirror.empty())
    return {};
  constexpr std::int32_t kMost = 1000;  // each takes a little memory to plan with
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (layers[l] < 0 || layers[l] > kMost)
      throw Error("layer '{}': its mirror count is {}; it must be from 0 to {}", step.layer_names[l], layers[l], kMost);
  MirrorCounts counts(step.ordered_tasks, 0);
  for (std::size_t t = 0; t < counts.size(); ++t) counts[t] = layers[step.tasks[t].layer.index()];
  return counts;
}

// Tasks that are run again, those first that take longest for their bytes.
class Costly {
 public:
  Costly(const MirrorSearch& search, MirrorCounts counts) : counts_(std::move(counts)), seconds_(counts_.size(), 0) {
    const Step& step = search.step();
    std::vector<double> price(counts_.size(), 0);
    for (std::size_t t = 0; t < counts_.size(); ++t) {
      const TaskId again = step.replay_of[t];
      if (counts_[t] == 0 || !again.valid()) continue;
      std::int64_t bytes = 1;
      for (const Operand& operand : step.operands_of(again))
        if (operand.access != Access::read) bytes += step.storage(step.tensor(operand.tensor).storage).bytes.count();
      seconds_[t] = fastest_seconds(step, search.cost(), again);
      price[t] = seconds_[t] / static_cast<double>(bytes);
      order_.push_back(t);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return price[a] > price[b]; });
  }

  // The counts with these kept that make up a share of the time.
  [[nodiscard]] MirrorCounts keeping(double share) const {
    const double enough = share * std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
    MirrorCounts counts = counts_;
    double kept = 0;
    for (const std::size_t t : order_) {
      if (kept >= enough) break;
      kept += seconds_[t];
      counts[t] = 0;
    }
    return counts;
  }

 private:
  MirrorCounts counts_;
  std::vector<double> seconds_;
  std::vector<std::size_t> order_;
};

MirrorCount parse_mirror(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  MirrorCount result;
  const char* const end = text.data() + text.size();
  const char* const begin = equals == std::string::npos ? end : text.data() + equals + 1;
  const auto [next, error] = std::from_chars(begin, end, result.count);
  if (error != std::errc{} || next != end || result.count < 0)
    throw Error("--mirror '{}' is not a layer and a count; write it as conv1=1", text);
  result.layer = text.substr(0, equals);
  return result;
}

constexpr std::array kSublinearFlags{
    PolicyOption{"--mirror", "sublinear: NAME=COUNT, how often a layer is run again, instead of a search; repeatable",
                 "", PolicyOption::Form::list,
                 [](PolicyOptions& options, const std::string& text) {
                   options.set<SublinearOptions>().mirror.push_back(parse_mirror(text));
                 }},
    PolicyOption{"--weigh",
                 "sublinear: with room to spare, keep what takes longest to run (time), or nothing more (bytes)",
                 "time", PolicyOption::Form::value,
                 [](PolicyOptions& options, const std::string& text) {
                   if (text != "time" && text != "bytes") throw Error("--weigh is time or bytes, not '{}'", text);
                   options.set<SublinearOptions>().weigh_by_cost = text == "time";
                 }},
};

PlanResult plan_sublinear(Step step, const CostModel& cost, const PlanningContext& context) {
  const auto& options = context.policy.get<SublinearOptions>();
  const MirrorCounts given = step.options.training ? counts_of_layers(step, options) : MirrorCounts();
  MirrorSearch search(std::move(step), cost, context);
  if (!given.empty()) {
    search.offer(given);
    return std::move(search).take();
  }
  const SplitPoints points(search.facts(), search.replayable());
  search.offer(search.counts(0));
  if (points.points().empty()) return std::move(search).take();
  // The search of appendix A.
  const Split finest = split_by(search, points, 0);
  search.offer(finest.counts);
  const double middle = std::sqrt(finest.kept * finest.largest);
  search.offer(split_by(search, points, static_cast<std::int64_t>(middle)).counts);
  constexpr int kGrid = 6;
  for (int i = 0; i < kGrid; ++i) {
    const double exponent = static_cast<double>(i) / (kGrid - 1) - 0.5;
    search.offer(split_by(search, points, static_cast<std::int64_t>(middle * std::exp2(exponent))).counts);
  }
  if (!options.weigh_by_cost || !search.has_room()) return std::move(search).take();
  const Costly costly(search, search.smallest());
  double fits = 0, exceeds = 1;
  for (int round = 0; round < 5; ++round) {
    const double share = (fits + exceeds) / 2;
    (search.offer_faster(costly.keeping(share)) ? fits : exceeds) = share;
  }
  return std::move(search).take();
}

}  // namespace

Policy sublinear_policy() {
  return {.name = "sublinear",
          .description = "segments are run again from what is kept between them: O(sqrt n) memory",
          .plan = plan_sublinear,
          .rank = 12,
          .moves = false,
          .options = kSublinearFlags};
}

}  // namespace tide
