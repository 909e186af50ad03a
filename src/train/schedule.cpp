#include "train/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/names.h"

namespace tide {
namespace {

constexpr std::array<std::string_view, 3> kScheduleNames{"constant", "step", "cosine"};

}  // namespace

std::string_view schedule_name(ScheduleKind kind) { return kScheduleNames[static_cast<std::size_t>(kind)]; }

ScheduleKind schedule_from_name(std::string_view name) {
  return find_name<ScheduleKind>(kScheduleNames, name, "schedule");
}

double learning_rate(const Schedule& schedule, std::int64_t step) {
  if (step < schedule.warmup_steps)
    return schedule.base * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
  switch (schedule.kind) {
    case ScheduleKind::constant: return schedule.base;
    case ScheduleKind::step:
      if (schedule.step_every < 1) return schedule.base;
      return schedule.base * std::pow(schedule.step_factor, static_cast<double>(step / schedule.step_every));
    case ScheduleKind::cosine: {
      const auto span = static_cast<double>(std::max<std::int64_t>(schedule.total_steps - schedule.warmup_steps, 1));
      const double progress = std::min(static_cast<double>(step - schedule.warmup_steps) / span, 1.0);
      return schedule.base * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    }
  }
  return schedule.base;
}

}  // namespace tide
