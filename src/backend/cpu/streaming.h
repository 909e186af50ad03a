// Results too large for the caches are written past them: a normal store would first read
// the line it is about to overwrite, a third more traffic for most elementwise tasks.
#pragma once

#include <array>
#include <cstdint>

namespace tide::cpu {

// Worth it for results of this many floats that do not take an operand's place (whose lines
// are in the cache already). Measured: a gain from about 8 MiB on, a loss at 1 MiB.
inline constexpr std::int64_t kStreamedFloats = std::int64_t{2} << 20;

// Copies from the cache to memory. Ends with fence_streams() before others may read it.
void stream_out(const float* from, float* to, std::int64_t count);
void fence_streams();

// Makes rows [begin, end) of y, of `width` floats each, with function(first row, rows, where
// to put them). From the end to the start: what was read or written last, by the task before
// or by this task's own first pass, is still in the cache.
template <typename Function>
void write_rows(float* y, std::int64_t begin, std::int64_t end, std::int64_t width, bool streamed,
                const Function& function) {
  alignas(64) std::array<float, 2048> buffer;
  constexpr auto kSize = static_cast<std::int64_t>(buffer.size());
  streamed = streamed && width <= kSize;
  const std::int64_t step = width < kSize ? kSize / width : 1;
  for (std::int64_t stop = end; stop > begin; stop -= step) {
    const std::int64_t row = stop - step > begin ? stop - step : begin;
    float* target = y + row * width;
    function(row, stop - row, streamed ? buffer.data() : target);
    if (streamed) stream_out(buffer.data(), target, (stop - row) * width);
  }
  if (streamed) fence_streams();
}

}  // namespace tide::cpu
