#include "backend/cpu/batch_norm_rows.h"

#include <array>

#include "backend/cpu/clones.h"
#include "backend/cpu/functions.h"

namespace tide::cpu {

TIDE_CLONES void add_block(const float* x, Index rows, Index channels, double count, float* block_sum,
                           float* block_squares, float* pivot, double* mean, double* squares) {
#pragma omp simd
  for (Index c = 0; c < channels; ++c) {
    pivot[c] = count > 0 ? static_cast<float>(mean[c]) : x[c];
    block_sum[c] = block_squares[c] = 0.0F;
  }
  for (Index r = 0; r < rows; ++r) {
    const float* row = x + r * channels;
#pragma omp simd
    for (Index c = 0; c < channels; ++c) {
      const float deviation = row[c] - pivot[c];
      block_sum[c] += deviation;
      block_squares[c] += deviation * deviation;
    }
  }
  const auto size = static_cast<double>(rows);
  const double weight = size / (count + size);
#pragma omp simd
  for (Index c = 0; c < channels; ++c) {
    const double offset = static_cast<double>(block_sum[c]) / size;
    const double difference = static_cast<double>(pivot[c]) + offset - mean[c];
    mean[c] += difference * weight;
    squares[c] +=
        static_cast<double>(block_squares[c]) - offset * offset * size + difference * difference * count * weight;
  }
}

TIDE_CLONES void add_gradient_block(const float* x, const float* dy, const float* mean, Index rows, Index channels,
                                    float* block_sum, float* block_product, double* sum, double* product) {
  for (Index c = 0; c < channels; ++c) block_sum[c] = block_product[c] = 0.0F;
  for (Index r = 0; r < rows; ++r) {
    const float *x_row = x + r * channels, *dy_row = dy + r * channels;
#pragma omp simd
    for (Index c = 0; c < channels; ++c) {
      block_sum[c] += dy_row[c];
      block_product[c] += dy_row[c] * (x_row[c] - mean[c]);
    }
  }
#pragma omp simd
  for (Index c = 0; c < channels; ++c) {
    sum[c] += static_cast<double>(block_sum[c]);
    product[c] += static_cast<double>(block_product[c]);
  }
}

TIDE_CLONES void normalize_rows(const float* x, float* y, Index rows, Index channels, const float* mean,
                                const float* factor, const float* shift) {
  for (Index r = 0; r < rows; ++r) {
    const float* from = x + r * channels;
    float* to = y + r * channels;
#pragma omp simd
    for (Index c = 0; c < channels; ++c) to[c] = (from[c] - mean[c]) * factor[c] + shift[c];
  }
}

// Results of fused rows are made here, a piece at a time, because they may replace operands
// that the next expression still reads.
constexpr Index kPiece = 1024;

TIDE_CLONES void normalize_fused_rows(const float* x, const float* other, const BatchNormOptions& options, float* y,
                                      Index rows, Index channels, const float* mean, const float* factor,
                                      const float* shift) {
  alignas(64) std::array<float, kPiece> memory;
  float* const piece = memory.data();
  for (Index r = 0; r < rows; ++r)
    for (Index begin = 0; begin < channels; begin += kPiece) {
      const Index count = std::min(kPiece, channels - begin), at = r * channels + begin;
#pragma omp simd
      for (Index c = 0; c < count; ++c) piece[c] = (x[at + c] - mean[begin + c]) * factor[begin + c] + shift[begin + c];
      if (other != nullptr)
#pragma omp simd
        for (Index c = 0; c < count; ++c) piece[c] += other[at + c];
      if (options.fused == FusedFunction::relu)
#pragma omp simd
        for (Index c = 0; c < count; ++c) piece[c] = std::max(piece[c], 0.0F);
      else
        apply_fused(options, piece, count);
      std::copy_n(piece, count, y + at);
    }
}

TIDE_CLONES void gate_rows(const Gate& gate, const float* dy, const float* second, float* g, Index begin_row,
                           Index end_row, Index channels) {
  alignas(64) std::array<float, kPiece> memory;
  float* const piece = memory.data();
  for (Index r = begin_row; r < end_row; ++r)
    for (Index begin = 0; begin < channels; begin += kPiece) {
      const Index count = std::min(kPiece, channels - begin), at = r * channels + begin;
      std::copy_n(dy + at, count, piece);
      if (second != nullptr)
#pragma omp simd
        for (Index c = 0; c < count; ++c) piece[c] += second[at + c];
      if (gate.options.fused != FusedFunction::relu) {
        const float* from = gate.y != nullptr ? gate.y + at : nullptr;
        alignas(64) std::array<float, kPiece> normalized;
        if (from == nullptr && gate.x != nullptr) {
          const float *mean = gate.mean + begin, *factor = gate.factor + begin, *shift = gate.shift + begin;
#pragma omp simd
          for (Index c = 0; c < count; ++c)
            normalized[static_cast<std::size_t>(c)] = (gate.x[at + c] - mean[c]) * factor[c] + shift[c];
          from = normalized.data();
        }
        if (from != nullptr) multiply_by_fused_slope(gate.options, from, piece, count);
      } else if (gate.y != nullptr) {
#pragma omp simd
        for (Index c = 0; c < count; ++c) piece[c] = gate.y[at + c] > 0 ? piece[c] : 0.0F;
      } else if (gate.x != nullptr) {
        const float *mean = gate.mean + begin, *factor = gate.factor + begin, *shift = gate.shift + begin;
#pragma omp simd
        for (Index c = 0; c < count; ++c)
          piece[c] = (gate.x[at + c] - mean[c]) * factor[c] + shift[c] > 0 ? piece[c] : 0.0F;
      }
      std::copy_n(piece, count, g + at);
    }
}

TIDE_CLONES void gradient_rows(const float* x, const float* dy, float* dx, Index rows, Index channels,
                               const float* mean, const float* factor, const float* slope, const float* offset) {
  for (Index r = 0; r < rows; ++r) {
    const float *x_row = x + r * channels, *dy_row = dy + r * channels;
    float* to = dx + r * channels;
#pragma omp simd
    for (Index c = 0; c < channels; ++c) to[c] = factor[c] * dy_row[c] + (slope[c] * (x_row[c] - mean[c]) + offset[c]);
  }
}

}  // namespace tide::cpu
