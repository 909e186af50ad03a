// The loops of batch normalization over NHWC, where x is rows x channels. Statistics are taken a block of rows at a
// time and merged in double precision (Chan et al.), so that one pass over memory is as accurate as two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/parallel.h"
#include "backend/cpu/streaming.h"
#include "base/bytes.h"
#include "network/options.h"

namespace tide::cpu {

using Index = std::int64_t;

// Merges the rows of one block into count, mean and squares (sum of squared deviations).
// Within the block, deviations are from a pivot that is near the mean: the mean so far.
void add_block(const float* x, Index rows, Index channels, double count, float* block_sum, float* block_squares,
               float* pivot, double* mean, double* squares);

// Adds the sums over one block of dy, and of dy times the deviation of x.
void add_gradient_block(const float* x, const float* dy, const float* mean, Index rows, Index channels,
                        float* block_sum, float* block_product, double* sum, double* product);

void normalize_rows(const float* x, float* y, Index rows, Index channels, const float* mean, const float* factor,
                    const float* shift);

// y = function(normalized x + other), where `other` may be null or y; the function is the options' fused one.
void normalize_fused_rows(const float* x, const float* other, const BatchNormOptions& options, float* y, Index rows,
                          Index channels, const float* mean, const float* factor, const float* shift);

// The function that gradients come through, and what its slope is made from: y, or else the normalized x.
struct Gate {
  const float* y;
  const float *x, *mean, *factor, *shift;
  BatchNormOptions options = {};
};

// g = the sum of one or two gradients times the slope; g may be any of them, or y.
void gate_rows(const Gate& gate, const float* dy, const float* second, float* g, Index begin_row, Index end_row,
               Index channels);

// dx = factor * dy + slope * (x - mean) + offset; dx may be dy or x.
void gradient_rows(const float* x, const float* dy, float* dx, Index rows, Index channels, const float* mean,
                   const float* factor, const float* slope, const float* offset);

// Makes all rows of y with function(first row, rows, where to put them), past the caches if
// y is large and `elsewhere` (not in the place of an operand).
template <typename Function>
void write_all_rows(float* y, Index rows, Index channels, bool elsewhere, int threads, const Function& function) {
  const bool streamed = elsewhere && rows * channels >= kStreamedFloats;
  parallel_ranges(threads, rows, kElementGrain / channels + 1,
                  [&](Index begin, Index end) { write_rows(y, begin, end, channels, streamed, function); });
}

inline Index rows_per_block(Index channels) { return std::clamp<Index>(32768 / channels, 8, 256); }

// What a reduction over one part of the rows needs.
struct Partial {
  double *first, *second;                     // of the part
  float *block_first, *block_second, *pivot;  // of the current block

  static Index bytes(Index channels) { return Bytes(channels * 28).aligned(64).count(); }
  static Partial of(std::byte* workspace, Index part, Index channels) {
    std::byte* start = workspace + part * bytes(channels);
    auto* doubles = reinterpret_cast<double*>(start);
    auto* floats = reinterpret_cast<float*>(start + 16 * channels);
    for (Index c = 0; c < 2 * channels; ++c) doubles[c] = 0.0;
    return {doubles, doubles + channels, floats, floats + channels, floats + 2 * channels};
  }
  static Partial existing(std::byte* workspace, Index part, Index channels) {
    auto* doubles = reinterpret_cast<double*>(workspace + part * bytes(channels));
    return {doubles, doubles + channels, nullptr, nullptr, nullptr};
  }
};

// Calls block(partial, first row, rows, rows of this part so far) for all blocks of all parts.
template <typename Block>
void reduce_rows(std::byte* workspace, Index rows, Index channels, Index parts, int threads, const Block& block) {
  const Index size = rows_per_block(channels);
  parallel_parts(threads, parts, [&](Index part) {
    const Partial partial = Partial::of(workspace, part, channels);
    const Range range = part_of(rows, part, parts);
    for (Index row = range.begin; row < range.end; row += size)
      block(partial, row, std::min(size, range.end - row), row - range.begin);
  });
}

}  // namespace tide::cpu
