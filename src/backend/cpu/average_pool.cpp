// Average pools, windowed and global.
#include "backend/cpu/parallel.h"
#include "backend/cpu/pool_window.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

// One over the positions that a window's average counts.
TIDE_INLINE float share(const PoolShape& p, bool count_padding, Index oh, Index ow) {
  const Index rows = count_padding ? p.rows.padded_taps(oh) : p.rows.end_tap(oh) - p.rows.first_tap(oh);
  const Index columns = count_padding ? p.columns.padded_taps(ow) : p.columns.end_tap(ow) - p.columns.first_tap(ow);
  return 1.0F / static_cast<float>(rows * columns);
}

// One row of outputs.
TIDE_CLONES void forward_row(const PoolShape& p, bool count_padding, const float* x, float* y, Index n, Index oh) {
  for (Index ow = 0; ow < p.columns.output; ++ow) {
    float* to = y + ((n * p.rows.output + oh) * p.columns.output + ow) * p.channels;
#pragma omp simd
    for (Index c = 0; c < p.channels; ++c) to[c] = 0.0F;
    for (Index kh = p.rows.first_tap(oh); kh < p.rows.end_tap(oh); ++kh)
      for (Index kw = p.columns.first_tap(ow); kw < p.columns.end_tap(ow); ++kw) {
        const Index row = n * p.rows.input + p.rows.position(oh, kh);
        const float* from = x + (row * p.columns.input + p.columns.position(ow, kw)) * p.channels;
#pragma omp simd
        for (Index c = 0; c < p.channels; ++c) to[c] += from[c];
      }
    const float factor = share(p, count_padding, oh, ow);
#pragma omp simd
    for (Index c = 0; c < p.channels; ++c) to[c] *= factor;
  }
}

// One row of input gradients, gathered from the windows that contain each position.
TIDE_CLONES void backward_row(const PoolShape& p, bool count_padding, const float* dy, float* dx, Index n, Index h) {
  for (Index w = 0; w < p.columns.input; ++w) {
    float* to = dx + ((n * p.rows.input + h) * p.columns.input + w) * p.channels;
#pragma omp simd
    for (Index c = 0; c < p.channels; ++c) to[c] = 0.0F;
    for (Index oh = p.rows.first_window(h); oh < p.rows.end_window(h); ++oh)
      for (Index ow = p.columns.first_window(w); ow < p.columns.end_window(w); ++ow) {
        if (p.rows.tap_at(oh, h) < 0 || p.columns.tap_at(ow, w) < 0) continue;
        const float factor = share(p, count_padding, oh, ow);
        const float* from = dy + ((n * p.rows.output + oh) * p.columns.output + ow) * p.channels;
#pragma omp simd
        for (Index c = 0; c < p.channels; ++c) to[c] += factor * from[c];
      }
  }
}

// Means over all positions of one sample, for channels [begin, end). Summed in short runs,
// so that rounding does not grow with the size of the image.
TIDE_CLONES void mean_of_sample(const float* x, float* y, Index positions, Index channels, Index begin, Index end) {
  constexpr Index kRun = 64;
  constexpr Index kBlock = 256;
  alignas(64) float run[kBlock], total[kBlock];
  for (Index first = begin; first < end; first += kBlock) {
    const Index width = end - first < kBlock ? end - first : kBlock;
    for (Index c = 0; c < width; ++c) total[c] = 0.0F;
    for (Index start = 0; start < positions; start += kRun) {
      const Index stop = start + kRun < positions ? start + kRun : positions;
      for (Index c = 0; c < width; ++c) run[c] = 0.0F;
      for (Index i = start; i < stop; ++i) {
        const float* from = x + i * channels + first;
#pragma omp simd
        for (Index c = 0; c < width; ++c) run[c] += from[c];
      }
#pragma omp simd
      for (Index c = 0; c < width; ++c) total[c] += run[c];
    }
    const float factor = 1.0F / static_cast<float>(positions);
#pragma omp simd
    for (Index c = 0; c < width; ++c) y[first + c] = total[c] * factor;
  }
}

TIDE_CLONES void spread_to_sample(const float* dy, float* dx, Index positions, Index channels) {
  const float factor = 1.0F / static_cast<float>(positions);
  for (Index i = 0; i < positions; ++i) {
    float* to = dx + i * channels;
#pragma omp simd
    for (Index c = 0; c < channels; ++c) to[c] = factor * dy[c];
  }
}

}  // namespace

Recipe average_pool_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<PoolOptions>();
  const PoolShape p = PoolShape::of(options.window, view.input(), view.output());
  const bool count_padding = options.count_padding;
  const int threads = team_for(view.input().elements(), threads_of(context));
  const bool forward = view.is_forward();
  const std::size_t from = forward ? view.read(Role::x) : view.read(Role::dy);
  const std::size_t to = forward ? view.written(Role::y) : view.written(Role::dx);
  const Index rows = forward ? p.rows.output : p.rows.input;
  const auto row = forward ? forward_row : backward_row;
  return recipe([=](const Launch& launch) {
    parallel_parts(threads, p.batch * rows, [&](Index part) {
      row(p, count_padding, input_of<float>(launch, from), output_of<float>(launch, to), part / rows, part % rows);
    });
  });
}

Recipe global_average_pool_recipe(const TaskView& view, const ContextPtr& context) {
  const Shape shape = view.input();
  const Index positions = shape.positions(), channels = shape.channels();
  const int threads = team_for(shape.elements(), threads_of(context));
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), y = view.written(Role::y);
    constexpr Index kChannels = 512;  // cut wide samples, so that a batch of one uses all threads
    const Index blocks = (channels + kChannels - 1) / kChannels;
    return recipe([=](const Launch& launch) {
      parallel_parts(threads, shape.batch() * blocks, [&](Index part) {
        const Index n = part / blocks, begin = part % blocks * kChannels;
        mean_of_sample(input_of<float>(launch, x) + n * positions * channels,
                       output_of<float>(launch, y) + n * channels, positions, channels, begin,
                       std::min(channels, begin + kChannels));
      });
    });
  }
  const std::size_t dy = view.read(Role::dy), dx = view.written(Role::dx);
  return recipe([=](const Launch& launch) {
    parallel_parts(threads, shape.batch(), [&](Index n) {
      spread_to_sample(input_of<float>(launch, dy) + n * channels,
                       output_of<float>(launch, dx) + n * positions * channels, positions, channels);
    });
  });
}

}  // namespace tide::cpu
