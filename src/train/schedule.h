// Learning rates over time.
#pragma once

#include <cstdint>
#include <string_view>

namespace tide {

enum class ScheduleKind : std::uint8_t { constant, step, cosine };

struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double base = 0;                // 0: train() takes what is usual (usual.h)
  std::int64_t warmup_steps = 0;  // rises linearly to `base` over these
  std::int64_t total_steps = 0;   // cosine: reaches zero at the end
  std::int64_t step_every = 0;    // step: multiplied by `step_factor` each so many steps
  double step_factor = 0.1;
};

[[nodiscard]] std::string_view schedule_name(ScheduleKind kind);
// Throws an Error that lists them where it is none of them.
[[nodiscard]] ScheduleKind schedule_from_name(std::string_view name);

// `step` counts from 0.
[[nodiscard]] double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace tide
