#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace tide {

std::string_view schedule_name(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::constant: return "constant";
    case ScheduleKind::step: return "step";
    case ScheduleKind::cosine: return "cosine";
  }
  return "";
}

ScheduleKind schedule_from_name(std::string_view name) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::step, ScheduleKind::cosine})
    if (schedule_name(kind) == name) return kind;
  throw Error("unknown schedule '{}'; they are constant, step and cosine", name);
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
