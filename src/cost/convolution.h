// The ways to compute a convolution that GPU libraries offer, by shape arithmetic: what each
// multiplies, what it moves, and the workspace it wants. Modelled after cuDNN's families:
//
//   implicit-gemm      a matrix product whose operands are gathered on the fly; no workspace
//   precomp-gemm       the same with the offsets computed once into a small table
//   gemm               im2col into a buffer (the whole batch), then a matrix product
//   winograd           3x3, stride 1: F(2x2,3x3) in registers; 2.25 times fewer products
//   winograd-nonfused  3x3, 5x5, stride 1: F(4x4,.), tiles transformed in memory; 4 (6.25) times fewer
//   fft                stride 1: planes of input, filters and output transformed whole
//   fft-tiling         stride 1: in tiles of 32x32, a quarter of the batch at a time
//
// Efficiencies are shares of what a good matrix product reaches; they are chosen, not
// measured, so that the order of the families is the one seen in practice. With n the batch,
// C and K channels, P x Q the output, R x S the kernel, workspaces in 4-byte words are
//
//   precomp-gemm       C R S + P Q
//   gemm               n C R S P Q, nothing for a 1x1 kernel of stride 1
//   winograd           16 C K
//   winograd-nonfused  t^2 (C K + (C + K) n ceil(P/4) ceil(Q/4)), t = R + 3
//   fft                F_h (F_w + 2) (C K + (C + K) n), F the power of two from P + R - 1
//   fft-tiling         32 (32 + 2) (C K + (C + K) ceil(n/4) tiles)
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string_view>

#include "step/step.h"

namespace tide {

enum class ConvolutionFamily : std::uint8_t {
  implicit_gemm,
  precomp_gemm,
  gemm,
  winograd,
  winograd_nonfused,
  fft,
  fft_tiling,
};
inline constexpr std::array<ConvolutionFamily, 7> kConvolutionFamilies{
    ConvolutionFamily::implicit_gemm, ConvolutionFamily::precomp_gemm,      ConvolutionFamily::gemm,
    ConvolutionFamily::winograd,      ConvolutionFamily::winograd_nonfused, ConvolutionFamily::fft,
    ConvolutionFamily::fft_tiling};
[[nodiscard]] std::string_view family_name(ConvolutionFamily family);
[[nodiscard]] std::optional<ConvolutionFamily> family_from_name(std::string_view name);

// One task of a convolution layer: which of the three passes, and its shapes.
struct ConvolutionProblem {
  enum class Pass : std::uint8_t { forward, backward_data, backward_weights };
  Pass pass = Pass::forward;
  bool dense = true;  // stride and dilation 1: what the transforms can do
  std::int64_t batch = 1, groups = 1;
  std::int64_t in_channels = 1, in_height = 1, in_width = 1;
  std::int64_t out_channels = 1, out_height = 1, out_width = 1;
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t element_bytes = 4;  // of input and output
  friend auto operator<=>(const ConvolutionProblem&, const ConvolutionProblem&) = default;

  // Multiplications and additions of the plain definition.
  [[nodiscard]] double direct_flops() const;
  // Bytes of input, filters and output, once each; filters count with the others' width.
  [[nodiscard]] double operand_bytes() const;
};

// The problem of a task; nothing for a task that is no convolution. A transposed convolution
// is one with its passes exchanged. Without the step's network (a plan from a file) stride
// and dilation are not known and `dense` is a guess from the shapes.
[[nodiscard]] std::optional<ConvolutionProblem> convolution_of(const Step& step, TaskId task);

[[nodiscard]] bool applies(ConvolutionFamily family, const ConvolutionProblem& problem);

// What a family does for a problem: transforms, then one product.
struct ConvolutionWork {
  Bytes workspace;
  bool matrix_units = true;  // the product can use them: transforms need full precision
  bool winograd = false;     // efficiency of its products differs by device
  double product_flops = 0;
  double product_efficiency = 1;  // of what a good matrix product reaches
  double product_bytes = 0;
  double transform_flops = 0;
  double transform_bytes = 0;
  int launches = 1;
};
// REQUIRES: the family applies.
[[nodiscard]] ConvolutionWork work_of(ConvolutionFamily family, const ConvolutionProblem& problem);

// The share of a device that a matrix product of these sides keeps busy: short sides leave
// parts of a tile idle.
[[nodiscard]] double product_utilization(double rows, double columns, double depth);

}  // namespace tide
