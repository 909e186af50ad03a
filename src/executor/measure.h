// Takes a profile: runs every distinct task of a step by itself on a backend, and copies in
// both directions at once.
#pragma once

#include <functional>
#include <optional>

#include "backend/backend.h"
#include "cost/profile.h"

namespace tide {

struct MeasureOptions {
  int runs = 9;                      // per task, after one to warm up; the median counts
  double seconds_per_task = 1;       // less runs, but at least three, where they take longer
  double link_bytes_per_second = 0;  // as ExecutorOptions has it
  // Taken over instead of measuring again; its link too, where it has one.
  std::optional<Profile> known;
  // Told before each measurement, with the number of them.
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// Operands that share a storage share memory, so pass a step as a plan has it, with results
// merged into operands. REQUIRES: `step` was annotated by `backend` and has its network.
[[nodiscard]] Profile measure_profile(const Step& step, Backend& backend, const MeasureOptions& options = {});

// Both directions while the other one is busy, for a link of this speed (0: as fast as it goes).
void measure_link(Backend& backend, double link_bytes_per_second, LinkSpeed& out, LinkSpeed& in);

}  // namespace tide
