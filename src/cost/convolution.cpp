#include "cost/convolution.h"

#include <bit>
#include <cmath>

#include "network/kind.h"

namespace tide {
namespace {

using Pass = ConvolutionProblem::Pass;

constexpr std::array<std::string_view, 7> kNames{"implicit-gemm",     "precomp-gemm", "gemm",      "winograd",
                                                 "winograd-nonfused", "fft",          "fft-tiling"};
constexpr std::int64_t kWord = 4;
constexpr std::int64_t kFftLimit = 256;  // cuDNN's largest plane
constexpr std::int64_t kFftTile = 32;
constexpr std::int64_t kFftSlices = 4;  // of the batch, with tiles

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double as_double(std::int64_t value) { return static_cast<double>(value); }

template <typename... Factors>
Bytes words(Factors... factors) {
  Bytes result(kWord);
  ((result = result * factors), ...);
  return result;
}

// Filters, and a sample's planes of input and output, `each` words long.
Bytes planes(const ConvolutionProblem& p, std::int64_t each, std::int64_t per_sample, std::int64_t samples) {
  return words(each, p.in_channels, p.out_channels) + words(each, p.in_channels + p.out_channels, samples, per_sample);
}

// The sides of the product that a pass is, per group.
double utilization(const ConvolutionProblem& p) {
  const double in = as_double(p.in_channels / p.groups), out = as_double(p.out_channels / p.groups);
  const double taps = as_double(p.kernel_height * p.kernel_width);
  const double outputs = as_double(p.batch) * as_double(p.out_height) * as_double(p.out_width);
  const double inputs = as_double(p.batch) * as_double(p.in_height) * as_double(p.in_width);
  switch (p.pass) {
    case Pass::forward: return product_utilization(out, outputs, in * taps);
    case Pass::backward_data: return product_utilization(in, inputs, out * taps);
    case Pass::backward_weights: return product_utilization(out, in * taps, outputs);
  }
  return 1;
}

ConvolutionWork direct(const ConvolutionProblem& p, double efficiency) {
  ConvolutionWork work;
  work.product_flops = p.direct_flops();
  work.product_efficiency = efficiency * utilization(p);
  work.product_bytes = p.operand_bytes();
  return work;
}

ConvolutionWork explicit_gemm(const ConvolutionProblem& p) {
  ConvolutionWork work = direct(p, 0.85);
  if (p.dense && p.kernel_height * p.kernel_width == 1) return work;  // the input is the matrix already
  work.workspace = words(p.batch, p.in_channels, p.kernel_height * p.kernel_width, p.out_height, p.out_width);
  const double matrix = as_double(work.workspace.count());
  work.transform_bytes = matrix + as_double(words(p.batch, p.in_channels, p.in_height, p.in_width).count());
  work.product_bytes += matrix;
  work.launches = 2;
  return work;
}

bool square(const ConvolutionProblem& p, std::int64_t side) {
  return p.kernel_height == side && p.kernel_width == side;
}

// One small product per element of a tile: sides are channels and tiles.
double tile_utilization(const ConvolutionProblem& p, std::int64_t tiles) {
  return product_utilization(as_double(p.out_channels), as_double(p.in_channels), as_double(tiles));
}

ConvolutionWork winograd(const ConvolutionProblem& p) {
  const std::int64_t tiles = p.batch * divide_up(p.out_height, 2) * divide_up(p.out_width, 2);
  ConvolutionWork work;
  work.matrix_units = false;
  work.winograd = true;
  work.workspace = words(16, p.in_channels, p.out_channels);
  work.product_flops = 2 * 16 * as_double(tiles) * as_double(p.in_channels) * as_double(p.out_channels);
  work.product_efficiency = 0.65 * tile_utilization(p, tiles);
  work.product_bytes = 1.5 * p.operand_bytes();  // neighbouring tiles share borders
  work.transform_bytes = 2 * as_double(work.workspace.count());
  work.launches = 2;
  return work;
}

ConvolutionWork winograd_nonfused(const ConvolutionProblem& p) {
  const std::int64_t elements = (p.kernel_height + 3) * (p.kernel_height + 3);
  const std::int64_t per_sample = divide_up(p.out_height, 4) * divide_up(p.out_width, 4);
  const std::int64_t tiles = p.batch * per_sample;
  ConvolutionWork work;
  work.matrix_units = false;
  work.winograd = true;
  work.workspace = planes(p, elements, per_sample, p.batch);
  work.product_flops =
      2 * as_double(elements) * as_double(tiles) * as_double(p.in_channels) * as_double(p.out_channels);
  work.product_efficiency = (square(p, 3) ? 0.85 : 0.6) * tile_utilization(p, tiles);
  work.product_bytes = as_double(work.workspace.count());
  work.transform_bytes = p.operand_bytes() + work.product_bytes;
  work.launches = 4;
  return work;
}

// Real planes of `height` x `width`, `per_sample` of them for each channel of a sample.
ConvolutionWork fourier(const ConvolutionProblem& p, std::int64_t height, std::int64_t width, std::int64_t per_sample,
                        std::int64_t samples) {
  const double count = as_double(p.in_channels) * as_double(p.out_channels) +
                       as_double(p.in_channels + p.out_channels) * as_double(p.batch) * as_double(per_sample);
  const double area = as_double(height) * as_double(width);
  const double spectrum = as_double(height) * as_double(width / 2 + 1);
  ConvolutionWork work;
  work.matrix_units = false;
  work.workspace = planes(p, height * (width + 2), per_sample, samples);
  work.product_flops =
      8 * spectrum * as_double(p.batch * per_sample) * as_double(p.in_channels) * as_double(p.out_channels);
  work.product_efficiency = 0.6 * tile_utilization(p, p.batch * per_sample);
  work.product_bytes = 2 * kWord * spectrum * count;
  work.transform_flops = 2.5 * area * std::log2(area) * count;
  work.transform_bytes = p.operand_bytes() + work.product_bytes;
  work.launches = 4;
  return work;
}

std::int64_t power_of_two(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

std::int64_t plane_height(const ConvolutionProblem& p) { return power_of_two(p.out_height + p.kernel_height - 1); }
std::int64_t plane_width(const ConvolutionProblem& p) { return power_of_two(p.out_width + p.kernel_width - 1); }

}  // namespace

std::string_view family_name(ConvolutionFamily family) { return kNames[static_cast<std::size_t>(family)]; }

std::optional<ConvolutionFamily> family_from_name(std::string_view name) {
  for (const ConvolutionFamily family : kConvolutionFamilies)
    if (family_name(family) == name) return family;
  return std::nullopt;
}

double ConvolutionProblem::direct_flops() const {
  return 2 * as_double(batch) * as_double(out_channels) * as_double(out_height) * as_double(out_width) *
         as_double(in_channels / groups) * as_double(kernel_height * kernel_width);
}

double ConvolutionProblem::operand_bytes() const {
  return as_double(element_bytes) *
         (as_double(batch) * as_double(in_channels) * as_double(in_height) * as_double(in_width) +
          as_double(batch) * as_double(out_channels) * as_double(out_height) * as_double(out_width) +
          as_double(in_channels / groups) * as_double(out_channels) * as_double(kernel_height * kernel_width));
}

std::optional<ConvolutionProblem> convolution_of(const Step& step, TaskId id) {
  const Task& task = step.task(id);
  const Product product = description_of(step.layer_kind(task)).product;
  const bool transposed = product == Product::transposed_convolution;
  if (product != Product::convolution && !transposed) return std::nullopt;
  ConvolutionProblem p;
  switch (task.kind) {
    case TaskKind::forward:
    case TaskKind::replay: p.pass = transposed ? Pass::backward_data : Pass::forward; break;
    case TaskKind::backward_data: p.pass = transposed ? Pass::forward : Pass::backward_data; break;
    case TaskKind::backward_weights: p.pass = Pass::backward_weights; break;
    case TaskKind::backward:
    case TaskKind::sum_gradients:
    case TaskKind::norm:
    case TaskKind::update:
    case TaskKind::reduce:
    case TaskKind::scatter:
    case TaskKind::gather: return std::nullopt;  // updates and sums carry the layer too
  }
  const Shape *in = nullptr, *out = nullptr, *filter = nullptr;
  for (const Operand& operand : step.operands_of(task)) {
    const Shape& shape = step.shape_of(operand);
    if (operand.role == Role::x || operand.role == Role::dx) in = &shape;
    if (operand.role == Role::y || operand.role == Role::dy) out = &shape;
    if (operand.role == Role::weight || operand.role == Role::d_weight) filter = &shape;
  }
  if (in == nullptr || out == nullptr || filter == nullptr) return std::nullopt;
  if (transposed) std::swap(in, out);
  p.batch = in->batch();
  p.in_channels = in->channels(), p.in_height = in->height(), p.in_width = in->width();
  p.out_channels = out->channels(), p.out_height = out->height(), p.out_width = out->width();
  p.kernel_height = filter->height(), p.kernel_width = filter->width();
  p.element_bytes = tide::element_bytes(step.options.activations);
  if (step.network == nullptr) {
    p.dense = 2 * p.out_height > p.in_height && 2 * p.out_width > p.in_width;
    if (!transposed) p.groups = std::max<std::int64_t>(in->channels() / filter->channels(), 1);
    return p;
  }
  const auto& options = step.network->layer(task.layer).as<ConvolutionOptions>();
  p.groups = options.groups;
  p.dense = options.window.stride_height == 1 && options.window.stride_width == 1 &&
            options.window.dilation_height == 1 && options.window.dilation_width == 1;
  return p;
}

bool applies(ConvolutionFamily family, const ConvolutionProblem& p) {
  const bool transformable = p.dense && p.groups == 1;
  const bool small = plane_height(p) <= kFftTile && plane_width(p) <= kFftTile;
  const bool point = p.kernel_height * p.kernel_width == 1;
  switch (family) {
    case ConvolutionFamily::implicit_gemm:
    case ConvolutionFamily::precomp_gemm:
    case ConvolutionFamily::gemm: return true;
    case ConvolutionFamily::winograd: return transformable && square(p, 3) && p.pass != Pass::backward_weights;
    case ConvolutionFamily::winograd_nonfused: return transformable && (square(p, 3) || square(p, 5));
    case ConvolutionFamily::fft:
      return transformable && !point && plane_height(p) <= kFftLimit && plane_width(p) <= kFftLimit;
    case ConvolutionFamily::fft_tiling:  // one tile would be `fft` again
      return transformable && !point && !small && p.kernel_height < kFftTile && p.kernel_width < kFftTile;
  }
  return false;
}

ConvolutionWork work_of(ConvolutionFamily family, const ConvolutionProblem& p) {
  switch (family) {
    case ConvolutionFamily::implicit_gemm: return direct(p, 0.6);
    case ConvolutionFamily::precomp_gemm: {
      ConvolutionWork work = direct(p, 0.8);
      work.workspace =
          words(p.in_channels / p.groups, p.kernel_height * p.kernel_width) + words(p.out_height, p.out_width);
      return work;
    }
    case ConvolutionFamily::gemm: return explicit_gemm(p);
    case ConvolutionFamily::winograd: return winograd(p);
    case ConvolutionFamily::winograd_nonfused: return winograd_nonfused(p);
    case ConvolutionFamily::fft: return fourier(p, plane_height(p), plane_width(p), 1, p.batch);
    case ConvolutionFamily::fft_tiling:
      return fourier(p, kFftTile, kFftTile,
                     divide_up(p.out_height, kFftTile - p.kernel_height + 1) *
                         divide_up(p.out_width, kFftTile - p.kernel_width + 1),
                     divide_up(p.batch, kFftSlices));
  }
  return {};
}

double product_utilization(double rows, double columns, double depth) {
  constexpr double kTile = 16;
  return rows / (rows + kTile) * (columns / (columns + kTile)) * (depth / (depth + kTile));
}

}  // namespace tide
