#include "backend/cpu/streaming.h"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tide::cpu {

#if defined(__SSE2__)
void stream_out(const float* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i < count && reinterpret_cast<std::uintptr_t>(to + i) % 16 != 0; ++i) to[i] = from[i];
  for (; i + 4 <= count; i += 4) _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
  for (; i < count; ++i) to[i] = from[i];
}

void fence_streams() { _mm_sfence(); }
#else
void stream_out(const float* from, float* to, std::int64_t count) {
  std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
}

void fence_streams() {}
#endif

}  // namespace tide::cpu
