#include "planner/ranks/triggers.h"

#include <algorithm>

#include "base/error.h"

namespace tide {

std::int64_t largest_late_batch(const std::function<bool(std::int64_t batch)>& fits, std::int64_t more,
                                std::int64_t most) {
  std::int64_t largest = 0;
  while (largest + more <= most && fits(largest + more)) largest += more;
  return largest;
}

void require_late_batch(std::int64_t asked, std::int64_t largest, std::int64_t more) {
  if (asked > largest)
    throw Error(
        "a batch of {} runs out of memory: with swap-ins as late as they go, {} fits, the largest in steps of {}; use "
        "that",
        asked, largest, more);
}

namespace {

// Triggers that are searched for together, the first and one behind the last of each group; the group of those needed
// first comes first.
using TriggerGroups = std::vector<std::pair<std::size_t, std::size_t>>;

TriggerGroups trigger_groups(std::size_t swaps) {
  constexpr std::size_t kAlone = 16, kGroups = 8;  // more than so many would take long
  const std::size_t count = swaps <= kAlone ? swaps : kGroups;
  TriggerGroups groups;
  for (std::size_t g = count; g-- > 0;) groups.emplace_back(swaps * g / count, swaps * (g + 1) / count);
  return groups;
}

void set_group(std::vector<std::int32_t>& early, const std::pair<std::size_t, std::size_t>& group,
               std::int32_t layers) {
  for (std::size_t k = group.first; k < group.second; ++k) early[k] = layers;
}

}  // namespace

TriggersFound earliest_triggers(const PlanTriggers& plan, std::size_t swaps, std::int32_t most) {
  TriggersFound found;
  std::vector<std::int32_t>& early = found.triggers.early.emplace(swaps, 0);
  found.result = plan(found.triggers);
  if (!found.result.plan) return found;
  for (const auto& group : trigger_groups(swaps)) {
    std::int32_t low = 0, high = most;  // `low` fits
    while (low < high) {
      const std::int32_t middle = low + (high - low + 1) / 2;
      set_group(early, group, middle);
      PlanResult tried = plan(found.triggers);
      if (tried.plan) {
        low = middle;
        found.result = std::move(tried);
      } else {
        high = middle - 1;
      }
    }
    set_group(early, group, low);
  }
  return found;
}

TriggersFound latest_triggers(const PlanTriggers& plan, const TimePlan& seconds, TriggersFound earliest) {
  TriggersFound found = std::move(earliest);
  if (!found.result.plan) return found;
  found.seconds = seconds(*found.result.plan);
  constexpr std::int32_t kPlaces = 12;
  std::vector<std::int32_t>& early = *found.triggers.early;
  for (const auto& group : trigger_groups(early.size())) {
    const std::int32_t first = early[group.first];
    std::int32_t best = first;
    for (std::int32_t place = kPlaces - 1; place >= 0; --place) {
      const auto tried_at = static_cast<std::int32_t>(std::int64_t{first} * place / kPlaces);
      if (tried_at == early[group.first]) continue;
      set_group(early, group, tried_at);
      PlanResult tried = plan(found.triggers);
      if (!tried.plan) continue;
      const double took = seconds(*tried.plan);
      if (took > found.seconds * (1 + 1e-9)) continue;
      best = tried_at;
      found.seconds = std::min(found.seconds, took);
      found.result = std::move(tried);
    }
    set_group(early, group, best);
  }
  return found;
}

}  // namespace tide
