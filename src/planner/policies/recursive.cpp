// Segments within segments (sublinear paper, section 4.4): of each segment k results are kept while
// it is worked on, and the parts between them are treated likewise. g(n) = k + g(n / (k + 1)).
//
//   depth 0   |---------------x---------------|--- kept from the forward pass
//   depth 1   |-------x-------|-------x-------|    kept while their half is worked on
//   depth 2   |---x---|---x---|---x---|---x---|
#include "planner/policies/recursive.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "planner/policy.h"
#include "planner/replay/mirror_search.h"
#include "planner/replay/split_points.h"

namespace tide {
namespace {

class Recursion {
 public:
  Recursion(const MirrorSearch& search, const SplitPoints& points, std::int32_t kept)
      : points_(points), kept_(static_cast<std::size_t>(kept)), all_(search.counts(1)) {}

  // With at most so many levels.
  MirrorCounts counts(std::int32_t levels) {
    levels_ = levels;
    deepest_ = 0;
    cuts_.clear();
    depths_.assign(all_.size(), 0);
    // What the forward pass comes to last is worked on at once, so that its own parts are depth 0.
    std::size_t first = 0;
    std::int32_t left = levels;
    while (left-- > 0 && first < points_.points().size()) first = divide(first, points_.points().size(), 0, true);
    MirrorCounts counts = depths_;
    for (std::size_t t = 0; t < counts.size(); ++t)
      if (all_[t] == 0) counts[t] = 0;
    points_.keep_at(cuts_, counts);
    return counts;
  }
  // The deepest level of the last counts.
  [[nodiscard]] std::int32_t deepest() const { return deepest_; }

 private:
  // Bytes and positions where a run of points [first, last) begins and ends.
  [[nodiscard]] std::int64_t bytes_before(std::size_t first) const {
    return first == 0 ? 0 : points_.points()[first - 1].before;
  }
  [[nodiscard]] std::int64_t bytes_behind(std::size_t last) const {
    return last == points_.points().size() ? points_.total() : points_.points()[last].before;
  }

  // Cuts a segment, whose inner points are [first, last), into k + 1 parts, and these. With
  // `open_end`, the last part is left alone: where its inner points begin.
  std::size_t divide(std::size_t first, std::size_t last, std::int32_t depth, bool open_end) {
    deepest_ = std::max(deepest_, depth);
    const std::int64_t begin = bytes_before(first), size = bytes_behind(last) - begin;
    const auto parts = static_cast<std::int64_t>(kept_) + 1;
    for (std::size_t k = 1; k <= kept_ && first < last; ++k) {
      const std::int64_t target = begin + size / parts * static_cast<std::int64_t>(k);
      const std::int64_t slack = size / parts / 8;
      const std::size_t low = std::clamp(points_.first_above(target - slack), first, last - 1);
      const std::size_t high = std::clamp(points_.first_above(target + slack), low + 1, last);
      const std::size_t cut = points_.narrowest(low, high);
      work_on(first, cut, depth + 1);
      cuts_.push_back({points_.points()[cut].position, depth});
      first = cut + 1;
    }
    if (open_end) return first;
    work_on(first, last, depth + 1);
    return last;
  }

  void work_on(std::size_t first, std::size_t last, std::int32_t depth) {
    const auto begin = first == 0 ? 0 : static_cast<std::size_t>(points_.points()[first - 1].position) + 1;
    const auto end = last == points_.points().size() ? depths_.size()
                                                     : static_cast<std::size_t>(points_.points()[last].position) + 1;
    std::fill(depths_.begin() + static_cast<std::ptrdiff_t>(begin), depths_.begin() + static_cast<std::ptrdiff_t>(end),
              depth);
    if (first < last && depth < levels_) divide(first, last, depth, false);
  }

  const SplitPoints& points_;
  std::size_t kept_;
  MirrorCounts all_;
  std::int32_t levels_ = 0, deepest_ = 0;
  std::vector<Cut> cuts_;
  std::vector<std::int32_t> depths_;  // by task
};

constexpr std::array kRecursiveFlags{
    PolicyOption{"--recursion", "recursive: how many results are kept on each level", "1", PolicyOption::Form::value,
                 [](PolicyOptions& options, const std::string& text) {
                   std::int32_t kept = 0;
                   const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), kept);
                   if (error != std::errc{} || next != text.data() + text.size())
                     throw Error("--recursion '{}' is not a number", text);
                   options.set<RecursiveOptions>().kept = kept;
                 }},
};

PlanResult plan_recursive(Step step, const CostModel& cost, const PlanningContext& context) {
  const std::int32_t kept = context.policy.get<RecursiveOptions>().kept;
  if (kept < 1) throw Error("--recursion {} is not a number of results to keep on each level; give 1 or more", kept);
  MirrorSearch search(std::move(step), cost, context);
  const SplitPoints points(search.facts(), search.replayable());
  Recursion recursion(search, points, kept);
  constexpr std::int32_t kAll = 64;
  search.offer(search.counts(0));
  search.offer(recursion.counts(kAll));
  const std::int32_t deepest = recursion.deepest();
  if (deepest > 1) search.offer(recursion.counts(deepest));
  // Fewer levels take more memory and less time.
  std::int32_t exceeds = 0, fits = deepest;
  while (search.has_room() && fits - exceeds > 1) {
    const std::int32_t levels = (fits + exceeds) / 2;
    (search.offer_faster(recursion.counts(levels)) ? fits : exceeds) = levels;
  }
  return std::move(search).take();
}

}  // namespace

Policy recursive_policy() {
  return {.name = "recursive",
          .description = "segments within segments: O(log n) memory for O(n log n) time",
          .plan = plan_recursive,
          .rank = 13,
          .moves = false,
          .options = kRecursiveFlags};
}

}  // namespace tide
