// Fixed partitions: which element falls into which part depends on sizes and the number
// of threads alone, so sums over parts have the same bits in every run.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tide::cpu {

struct Range {
  std::int64_t begin = 0, end = 0;
};

// Part `part` of [0, count), cut evenly.
inline Range part_of(std::int64_t count, std::int64_t part, std::int64_t parts) {
  return {count * part / parts, count * (part + 1) / parts};
}

// Calls body(part) for every part. One team size throughout: a smaller team would end
// OpenMP's idle threads, and the next larger one would have to start them again.
template <typename Body>
void parallel_parts(int threads, std::int64_t parts, const Body& body) {
  if (threads <= 1 || parts <= 1) {
    for (std::int64_t part = 0; part < parts; ++part) body(part);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t part = 0; part < parts; ++part) body(part);
}

// Calls body(begin, end) for parts of [0, count) of at least about `grain`, one per thread.
template <typename Body>
void parallel_ranges(int threads, std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t parts = std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1, threads);
  parallel_parts(threads, parts, [&](std::int64_t part) {
    const Range range = part_of(count, part, parts);
    body(range.begin, range.end);
  });
}

// A part with fewer elements than this is not worth waking a thread for: where cores are
// shared with other programs, a wake-up may take longer than a large task.
inline constexpr std::int64_t kElementGrain = 32768;

// The threads to use for a task over this many elements.
inline int team_for(std::int64_t elements, int threads) { return elements < 2 * kElementGrain ? 1 : threads; }

}  // namespace tide::cpu
