// Local response normalization across channels: y = x / d^beta with
// d_c = k + alpha / size * (sum of squares over the channels around c).
#include <cmath>

#include "backend/cpu/clones.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

struct LrnShape {
  Index channels, half;  // half: channels on either side
  float k, scale, beta;  // scale: alpha / size

  // Floats of one row with `half` zeros on either side, so that sums need no ends.
  [[nodiscard]] Index padded() const { return (channels + 2 * half + 15) / 16 * 16; }
};

// power[i] = d[i] ^ -beta. The usual 3/4 needs two square roots only.
TIDE_INLINE void negative_power(const LrnShape& s, const float* d, float* power) {
  if (s.beta == 0.75F) {
#pragma omp simd
    for (Index c = 0; c < s.channels; ++c) {
      const float root = std::sqrt(d[c]);
      power[c] = 1.0F / (root * std::sqrt(root));
    }
  } else {
    for (Index c = 0; c < s.channels; ++c) power[c] = std::pow(d[c], -s.beta);
  }
}

// sums[c] = sum of terms[c .. c + 2 * half], of terms that are padded by half on either side.
TIDE_INLINE void window_sums(const LrnShape& s, const float* terms, float* sums) {
#pragma omp simd
  for (Index c = 0; c < s.channels; ++c) sums[c] = terms[c];
  for (Index j = 1; j <= 2 * s.half; ++j) {
#pragma omp simd
    for (Index c = 0; c < s.channels; ++c) sums[c] += terms[c + j];
  }
}

TIDE_INLINE void denominators(const LrnShape& s, const float* x, float* terms, float* d) {
  float* inner = terms + s.half;
#pragma omp simd
  for (Index c = 0; c < s.channels; ++c) inner[c] = x[c] * x[c];
  window_sums(s, terms, d);
#pragma omp simd
  for (Index c = 0; c < s.channels; ++c) d[c] = s.k + s.scale * d[c];
}

TIDE_INLINE void clear(float* buffer, Index count) {
  for (Index i = 0; i < count; ++i) buffer[i] = 0.0F;
}

TIDE_CLONES void forward_rows(const LrnShape& s, const float* x, float* y, Index rows, float* buffer) {
  float *terms = buffer, *d = buffer + s.padded(), *power = d + s.padded();
  clear(terms, s.padded());
  for (Index r = 0; r < rows; ++r) {
    const float* from = x + r * s.channels;
    float* to = y + r * s.channels;
    denominators(s, from, terms, d);
    negative_power(s, d, power);
#pragma omp simd
    for (Index c = 0; c < s.channels; ++c) to[c] = from[c] * power[c];
  }
}

// A row of dx depends on the whole row of dy, which dx may replace: it is read first.
TIDE_CLONES void backward_rows(const LrnShape& s, const float* x, const float* dy, float* dx, Index rows,
                               float* buffer) {
  float *terms = buffer, *d = buffer + s.padded(), *power = d + s.padded();
  clear(terms, s.padded());
  const float factor = 2.0F * s.scale * s.beta;
  for (Index r = 0; r < rows; ++r) {
    const float *x_row = x + r * s.channels, *dy_row = dy + r * s.channels;
    float* to = dx + r * s.channels;
    denominators(s, x_row, terms, d);
    negative_power(s, d, power);
    float* inner = terms + s.half;
#pragma omp simd
    for (Index c = 0; c < s.channels; ++c) inner[c] = dy_row[c] * x_row[c] * power[c] / d[c];
    window_sums(s, terms, d);
#pragma omp simd
    for (Index c = 0; c < s.channels; ++c) to[c] = dy_row[c] * power[c] - factor * x_row[c] * d[c];
  }
}

}  // namespace

Recipe lrn_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<LrnOptions>();
  const Shape shape = view.input();
  const int threads = team_for(shape.elements(), threads_of(context));
  const LrnShape s{shape.channels(), options.size / 2, static_cast<float>(options.k),
                   static_cast<float>(options.alpha / static_cast<double>(options.size)),
                   static_cast<float>(options.beta)};
  const Index rows = shape.batch() * shape.positions();
  const Index parts = std::min<Index>(threads, rows);
  const Bytes workspace(parts * 3 * s.padded() * static_cast<Index>(sizeof(float)));
  const bool forward = view.is_forward();
  const std::size_t x = view.read(Role::x), dy = forward ? x : view.read(Role::dy);
  const std::size_t target = forward ? view.written(Role::y) : view.written(Role::dx);
  return recipe(
      [=](const Launch& launch) {
        parallel_parts(threads, parts, [&](Index part) {
          const Range range = part_of(rows, part, parts);
          const Index first = range.begin * s.channels, count = range.end - range.begin;
          float* buffer = reinterpret_cast<float*>(launch.workspace) + part * 3 * s.padded();
          const float* from = input_of<float>(launch, x) + first;
          float* to = output_of<float>(launch, target) + first;
          if (forward)
            forward_rows(s, from, to, count, buffer);
          else
            backward_rows(s, from, input_of<float>(launch, dy) + first, to, count, buffer);
        });
      },
      workspace);
}

}  // namespace tide::cpu
