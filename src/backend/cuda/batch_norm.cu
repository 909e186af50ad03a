#include "backend/cuda/batch_norm.cuh"

namespace tide::cuda {
namespace {

// Sums of the deviation from a pivot, the first row, and of its square: sums of squares far from
// zero would lose all digits.
template <typename Type>
struct DeviationTerms {
  const Type* x;
  static constexpr int kSums = 2, kRows = 4;
  template <int width>
  __device__ Pack<width> start(int channel) const {
    return Pack<width>::load(x + channel);
  }
  template <int width>
  __device__ Raw<Type, width> fetch(std::int64_t at) const {
    return Raw<Type, width>::load(x + at);
  }
  template <int width>
  __device__ void add(const Pack<width>& pivot, const Raw<Type, width>& fetched, std::int64_t,
                      Pack<width>* sums) const {
    const Pack<width> value = Pack<width>::of(fetched);
    for (int k = 0; k < width; ++k) {
      const float deviation = value.v[k] - pivot.v[k];
      sums[0].v[k] += deviation;
      sums[1].v[k] += deviation * deviation;
    }
  }
};

struct RowMoments {
  double mean, squares;  // around the mean
};
__device__ RowMoments row_moments(const Merged<2>& sums, double pivot, double count) {
  const double offset = sums.v[0] / count, squares = sums.v[1] - offset * offset * count;
  // max() would turn a NaN into 0.
  return {pivot + offset, squares < 0 ? 0 : squares};
}

template <typename Type>
__global__ void merge_moments_kernel(RowsAndChannels s, int parts, const Type* x, const float* partial,
                                     float* moments) {
  const std::int64_t c = merge_channel();
  const double pivot = has_merged(s) ? static_cast<double>(to_float(x[c])) : 0;
  const Merged<2> sums = merge_parts<2>(s, parts, partial);
  if (!has_merged(s)) return;
  const RowMoments made = row_moments(sums, pivot, static_cast<double>(s.rows));
  moments[c] = static_cast<float>(made.mean);
  moments[s.channels + c] = static_cast<float>(made.squares);
}

template <typename Type>
__global__ void merge_statistics_kernel(RowsAndChannels s, int parts, const Type* x, const float* partial,
                                        BatchNormStatistics out) {
  const std::int64_t c = merge_channel();
  double pivot = 0, old_mean = 0, old_variance = 0, known_mean = 0, known_deviation = 1;
  if (has_merged(s)) pivot = static_cast<double>(to_float(x[c]));
  if (has_merged(s) && out.rows_before > 0) {
    known_mean = static_cast<double>(out.mean[c]);
    known_deviation = static_cast<double>(out.inverse_deviation[c]);
  }
  if (has_merged(s) && out.running_mean != nullptr) {
    old_mean = static_cast<double>(out.running_mean[c]);
    old_variance = static_cast<double>(out.running_variance[c]);
  }
  const Merged<2> sums = merge_parts<2>(s, parts, partial);
  if (!has_merged(s)) return;
  auto count = static_cast<double>(s.rows);
  auto [mean, squares] = row_moments(sums, pivot, count);
  if (out.rows_before > 0) {
    const auto before = static_cast<double>(out.rows_before);
    const double variance = 1 / (known_deviation * known_deviation) - out.epsilon, difference = mean - known_mean;
    squares += (variance < 0 ? 0 : variance) * before + difference * difference * before * count / (before + count);
    mean = known_mean + difference * count / (before + count);
    count += before;
  }
  keep_statistics(out, c, count, mean, squares, old_mean, old_variance);
}

__global__ void frozen_kernel(std::int64_t channels, double epsilon, const float* running_mean,
                              const float* running_variance, float* mean, float* inverse_deviation) {
  const std::int64_t c = thread_index();
  if (c >= channels) return;
  mean[c] = running_mean[c];
  inverse_deviation[c] = static_cast<float>(1 / sqrt(static_cast<double>(running_variance[c]) + epsilon));
}

template <typename Type, int width, bool adds, FusedFunction function>
__global__ void __launch_bounds__(kThreads) apply_kernel(std::int64_t rows, ColumnGrid grid, BatchNormApply a) {
  const int group = static_cast<int>(blockIdx.x) * grid.tx + static_cast<int>(threadIdx.x);
  if (group >= grid.groups) return;
  const int channel = group * width;
  const auto *x = static_cast<const Type*>(a.x), *other = static_cast<const Type*>(a.other);
  auto* y = static_cast<Type*>(a.y);
  const FunctionNumbers numbers = numbers_of(a.fused);
  Normalizer<width> normalized = Normalizer<width>::of(a.mean, a.spread, a.scale, a.shift, channel);
  if (a.is_variance) {
    const Pack<width> variance = Pack<width>::load(a.spread + channel), gain = Pack<width>::load(a.scale + channel);
    for (int k = 0; k < width; ++k)
      normalized.factor.v[k] = static_cast<float>(1 / sqrt(static_cast<double>(variance.v[k]) + a.epsilon)) * gain.v[k];
  }
  struct Loaded {
    Raw<Type, width> x, other;
  };
  for_each_row<4>(
      rows, grid, static_cast<std::int64_t>(grid.groups) * width, channel,
      [&](std::int64_t at) {
        Loaded loaded;
        loaded.x = Raw<Type, width>::load(x + at);
        if constexpr (adds) loaded.other = Raw<Type, width>::load(other + at);
        return loaded;
      },
      [&](std::int64_t at, const Loaded& loaded) {
        Pack<width> value = Pack<width>::of(loaded.x);
        for (int k = 0; k < width; ++k) value.v[k] = normalized(value.v[k], k);
        if constexpr (adds) {
          const Pack<width> added = Pack<width>::of(loaded.other);
          for (int k = 0; k < width; ++k) value.v[k] += added.v[k];
        }
        for (int k = 0; k < width; ++k) value.v[k] = fused<function>(value.v[k], numbers);
        value.store(y + at);
      });
}

template <typename Type, bool adds, FusedFunction function>
void launch_apply(cudaStream_t stream, const RowsAndChannels& s, const BatchNormApply& apply) {
  const ColumnGrid grid = apply_grid<Type>(s);
  if (grid.width > 1)
    apply_kernel<Type, kPackOf<Type>, adds, function><<<grid.grid(), grid.block(), 0, stream>>>(s.rows, grid, apply);
  else
    apply_kernel<Type, 1, adds, function><<<grid.grid(), grid.block(), 0, stream>>>(s.rows, grid, apply);
}

// Sums the deviations of x, then has them merged: merge(x, parts, partial sums).
template <typename Merge>
cudaError_t with_deviations(cudaStream_t stream, const RowsAndChannels& s, Element element, const void* x,
                            std::byte* workspace, Merge merge) {
  auto* partial = reinterpret_cast<float*>(workspace);
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    const ColumnGrid grid = reduction_grid<Type>(s);
    const auto* values = static_cast<const Type*>(x);
    launch_reduce<Type>(stream, s, grid, DeviationTerms<Type>{values}, partial);
    merge(values, static_cast<int>(grid.parts), static_cast<const float*>(partial));
    return cudaGetLastError();
  });
}

}  // namespace

std::size_t batch_norm_training_bytes(const RowsAndChannels& s, Element element) {
  return with_element(element, [&](auto type) { return partial_floats<decltype(type)>(s, 2) * sizeof(float); });
}

cudaError_t launch_batch_norm_statistics(cudaStream_t stream, const RowsAndChannels& s, Element element, const void* x,
                                         const BatchNormStatistics& statistics, std::byte* workspace) {
  return with_deviations(stream, s, element, x, workspace, [&](auto* values, int parts, const float* partial) {
    merge_statistics_kernel<<<merge_blocks(s), merge_block(), 0, stream>>>(s, parts, values, partial, statistics);
  });
}

cudaError_t launch_batch_norm_moments(cudaStream_t stream, const RowsAndChannels& s, Element element, const void* x,
                                      float* moments, std::byte* workspace) {
  return with_deviations(stream, s, element, x, workspace, [&](auto* values, int parts, const float* partial) {
    merge_moments_kernel<<<merge_blocks(s), merge_block(), 0, stream>>>(s, parts, values, partial, moments);
  });
}

cudaError_t launch_batch_norm_frozen(cudaStream_t stream, std::int64_t channels, double epsilon,
                                     const float* running_mean, const float* running_variance, float* mean,
                                     float* inverse_deviation) {
  frozen_kernel<<<blocks_for(channels), kThreads, 0, stream>>>(channels, epsilon, running_mean, running_variance, mean,
                                                               inverse_deviation);
  return cudaGetLastError();
}

cudaError_t launch_batch_norm_apply(cudaStream_t stream, const RowsAndChannels& s, Element element,
                                    const BatchNormApply& apply) {
  return with_element(element, [&](auto type) {
    with_fused(apply.fused.function, [&](auto function) {
      if (apply.other != nullptr)
        launch_apply<decltype(type), true, function>(stream, s, apply);
      else
        launch_apply<decltype(type), false, function>(stream, s, apply);
    });
    return cudaGetLastError();
  });
}

}  // namespace tide::cuda
