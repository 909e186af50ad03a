#include <cstring>

#include "backend/cpu/parallel.h"
#include "backend/cpu/pool_window.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

// Channels that are worked on together, so that maxima and positions stay in registers or L1.
constexpr Index kBlock = 128;

// The first maximum of one window for up to kBlock channels from x on; a NaN wins, so that
// it is seen. `x` is the sample's first element of the block.
TIDE_INLINE void first_maximum(const PoolShape& p, const float* x, Index oh, Index ow, Index channels, float* best,
                               std::int32_t* where) {
  const Index first_row = p.rows.first_tap(oh), end_row = p.rows.end_tap(oh);
  const Index first_column = p.columns.first_tap(ow), end_column = p.columns.end_tap(ow);
  bool first = true;
  for (Index kh = first_row; kh < end_row; ++kh)
    for (Index kw = first_column; kw < end_column; ++kw) {
      const float* from = x + (p.rows.position(oh, kh) * p.columns.input + p.columns.position(ow, kw)) * p.channels;
      const auto tap = static_cast<std::int32_t>(kh * p.columns.kernel + kw);
      if (first) {
#pragma omp simd
        for (Index c = 0; c < channels; ++c) {
          best[c] = from[c];
          where[c] = tap;
        }
        first = false;
        continue;
      }
#pragma omp simd
      for (Index c = 0; c < channels; ++c) {
        const float value = from[c];
        const bool larger = value > best[c] || value != value;
        best[c] = larger ? value : best[c];
        where[c] = larger ? tap : where[c];
      }
    }
}

// One row of outputs. Position is void where positions are not wanted.
template <typename Position>
TIDE_INLINE void forward_row(const PoolShape& p, const float* x, float* y, Position* indices, Index n, Index oh) {
  alignas(64) float best[kBlock];
  alignas(64) std::int32_t where[kBlock];
  const float* sample = x + n * p.rows.input * p.columns.input * p.channels;
  for (Index ow = 0; ow < p.columns.output; ++ow) {
    const Index out = ((n * p.rows.output + oh) * p.columns.output + ow) * p.channels;
    for (Index begin = 0; begin < p.channels; begin += kBlock) {
      const Index channels = p.channels - begin < kBlock ? p.channels - begin : kBlock;
      first_maximum(p, sample + begin, oh, ow, channels, best, where);
#pragma omp simd
      for (Index c = 0; c < channels; ++c) y[out + begin + c] = best[c];  // NOLINT: first_maximum fills it
      if (indices == nullptr) continue;
#pragma omp simd
      for (Index c = 0; c < channels; ++c) indices[out + begin + c] = static_cast<Position>(where[c]);
    }
  }
}

TIDE_CLONES void forward_row_u8(const PoolShape& p, const float* x, float* y, std::uint8_t* indices, Index n,
                                Index oh) {
  forward_row(p, x, y, indices, n, oh);
}

TIDE_CLONES void forward_row_i32(const PoolShape& p, const float* x, float* y, std::int32_t* indices, Index n,
                                 Index oh) {
  forward_row(p, x, y, indices, n, oh);
}

// One row of input gradients, gathered from the windows that contain each position. No two
// threads write one element, and every sum has one order.
template <typename Position>
TIDE_INLINE void gather_row(const PoolShape& p, const Position* indices, const float* dy, float* dx, Index n, Index h) {
  for (Index w = 0; w < p.columns.input; ++w) {
    float* to = dx + ((n * p.rows.input + h) * p.columns.input + w) * p.channels;
#pragma omp simd
    for (Index c = 0; c < p.channels; ++c) to[c] = 0.0F;
    for (Index oh = p.rows.first_window(h); oh < p.rows.end_window(h); ++oh) {
      const Index kh = p.rows.tap_at(oh, h);
      if (kh < 0) continue;
      for (Index ow = p.columns.first_window(w); ow < p.columns.end_window(w); ++ow) {
        const Index kw = p.columns.tap_at(ow, w);
        if (kw < 0) continue;
        const auto tap = static_cast<Position>(kh * p.columns.kernel + kw);
        const Index out = ((n * p.rows.output + oh) * p.columns.output + ow) * p.channels;
        const Position* where = indices + out;
        const float* from = dy + out;
#pragma omp simd
        for (Index c = 0; c < p.channels; ++c) to[c] += where[c] == tap ? from[c] : 0.0F;
      }
    }
  }
}

TIDE_CLONES void gather_row_u8(const PoolShape& p, const std::uint8_t* indices, const float* dy, float* dx, Index n,
                               Index h) {
  gather_row(p, indices, dy, dx, n, h);
}

TIDE_CLONES void gather_row_i32(const PoolShape& p, const std::int32_t* indices, const float* dy, float* dx, Index n,
                                Index h) {
  gather_row(p, indices, dy, dx, n, h);
}

// A block of channels of one sample, with the maxima found again. Adds in the same order
// as gather_row, so both give the same bits.
TIDE_CLONES void scatter_block(const PoolShape& p, const float* x, const float* dy, float* dx, Index n, Index begin) {
  alignas(64) float best[kBlock];
  alignas(64) std::int32_t where[kBlock];
  const Index channels = p.channels - begin < kBlock ? p.channels - begin : kBlock;
  const Index first = n * p.rows.input * p.columns.input * p.channels + begin;
  for (Index i = 0; i < p.rows.input * p.columns.input; ++i)
    for (Index c = 0; c < channels; ++c) dx[first + i * p.channels + c] = 0.0F;
  for (Index oh = 0; oh < p.rows.output; ++oh)
    for (Index ow = 0; ow < p.columns.output; ++ow) {
      first_maximum(p, x + first, oh, ow, channels, best, where);
      const float* from = dy + ((n * p.rows.output + oh) * p.columns.output + ow) * p.channels + begin;
      for (Index c = 0; c < channels; ++c) {
        const Index kh = where[c] / p.columns.kernel, kw = where[c] % p.columns.kernel;
        const Index to = p.rows.position(oh, kh) * p.columns.input + p.columns.position(ow, kw);
        dx[first + to * p.channels + c] += from[c];
      }
    }
}

template <typename Position, typename Row>
Kernel forward_kernel(const TaskView& view, const PoolShape& p, Row row, int threads) {
  const std::size_t x = view.read(Role::x), y = view.written(Role::y);
  const auto indices = view.find_written(Role::indices);
  return [=](const Launch& launch) {
    auto* positions = indices ? output_of<Position>(launch, *indices) : nullptr;
    parallel_parts(threads, p.batch * p.rows.output, [&](Index part) {
      row(p, input_of<float>(launch, x), output_of<float>(launch, y), positions, part / p.rows.output,
          part % p.rows.output);
    });
  };
}

template <typename Position, typename Row>
Kernel gather_kernel(const TaskView& view, const PoolShape& p, Row row, int threads) {
  const std::size_t indices = view.read(Role::indices), dy = view.read(Role::dy), dx = view.written(Role::dx);
  return [=](const Launch& launch) {
    parallel_parts(threads, p.batch * p.rows.input, [&](Index part) {
      row(p, input_of<Position>(launch, indices), input_of<float>(launch, dy), output_of<float>(launch, dx),
          part / p.rows.input, part % p.rows.input);
    });
  };
}

Kernel scatter_kernel(const TaskView& view, const PoolShape& p, int threads) {
  const std::size_t x = view.read(Role::x), dy = view.read(Role::dy), dx = view.written(Role::dx);
  const Index blocks = (p.channels + kBlock - 1) / kBlock;
  return [=](const Launch& launch) {
    parallel_parts(threads, p.batch * blocks, [&](Index part) {
      scatter_block(p, input_of<float>(launch, x), input_of<float>(launch, dy), output_of<float>(launch, dx),
                    part / blocks, part % blocks * kBlock);
    });
  };
}

}  // namespace

Recipe max_pool_recipe(const TaskView& view, const ContextPtr& context) {
  const PoolShape shape = PoolShape::of(view.options<PoolOptions>().window, view.input(), view.output());
  const int threads = team_for(view.input().elements(), threads_of(context));
  const auto indices = view.is_forward() ? view.find_written(Role::indices) : view.find_read(Role::indices);
  const bool small = !indices || view.tensor(*indices).type == DataType::u8;
  if (view.is_forward())
    return recipe(small ? forward_kernel<std::uint8_t>(view, shape, forward_row_u8, threads)
                        : forward_kernel<std::int32_t>(view, shape, forward_row_i32, threads));
  if (!indices) return recipe(scatter_kernel(view, shape, threads));
  return recipe(small ? gather_kernel<std::uint8_t>(view, shape, gather_row_u8, threads)
                      : gather_kernel<std::int32_t>(view, shape, gather_row_i32, threads));
}

}  // namespace tide::cpu
