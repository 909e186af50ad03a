// Two passes: the first sums the gradients that arrive and their products with x, the second
// makes dx of the sums. Where the gradient behind the fused function is a result of its own, the first pass stores it
// and the second reads it instead of what it was made of.
#include "backend/cuda/batch_norm.cuh"

namespace tide::cuda {
namespace {

// What the slope of the fused function is made from.
enum class SlopeFrom { nothing, y, x };

// The sum of one or two gradients behind that function.
template <typename Type, SlopeFrom slope, FusedFunction function, bool two>
struct ArrivingGradient {
  const Type *x, *y, *dy, *second;
  const float *mean, *inverse_deviation, *scale, *shift;
  FunctionNumbers numbers;
  // So many rows that about eight loads are under way.
  static constexpr int kLoads = 2 + (slope == SlopeFrom::y ? 1 : 0) + (two ? 1 : 0), kRows = kLoads > 2 ? 2 : 4;

  template <int width>
  struct Fetched {
    Raw<Type, width> x, y, dy, second;
  };
  template <int width>
  __device__ Normalizer<width> start(int channel) const {
    if constexpr (slope == SlopeFrom::x)
      return Normalizer<width>::of(mean, inverse_deviation, scale, shift, channel);
    else
      return {Pack<width>::load(mean + channel), {}, {}};
  }
  template <int width>
  __device__ Fetched<width> fetch(std::int64_t at) const {
    Fetched<width> fetched;
    fetched.x = Raw<Type, width>::load(x + at);
    fetched.dy = Raw<Type, width>::load(dy + at);
    if constexpr (two) fetched.second = Raw<Type, width>::load(second + at);
    if constexpr (slope == SlopeFrom::y) fetched.y = Raw<Type, width>::load(y + at);
    return fetched;
  }
  template <int width>
  __device__ Pack<width> sum(const Normalizer<width>& normalized, const Fetched<width>& fetched,
                             const Pack<width>& value) const {
    Pack<width> gradient = Pack<width>::of(fetched.dy);
    if constexpr (two) {
      const Pack<width> other = Pack<width>::of(fetched.second);
      for (int k = 0; k < width; ++k) gradient.v[k] += other.v[k];
    }
    if constexpr (slope == SlopeFrom::y) {
      const Pack<width> result = Pack<width>::of(fetched.y);
      for (int k = 0; k < width; ++k) gradient.v[k] = through_fused<function>(gradient.v[k], result.v[k], numbers);
    } else if constexpr (slope == SlopeFrom::x) {
      for (int k = 0; k < width; ++k)
        gradient.v[k] = through_fused<function>(gradient.v[k], normalized(value.v[k], k), numbers);
    }
    return gradient;
  }
};

// Sums of the gradient and of its product with the deviation of x.
template <typename Type, typename Arriving, bool stores>
struct GradientTerms {
  Arriving arriving;
  Type* stored;
  static constexpr int kSums = 2, kRows = Arriving::kRows;
  template <int width>
  __device__ Normalizer<width> start(int channel) const {
    return arriving.template start<width>(channel);
  }
  template <int width>
  __device__ auto fetch(std::int64_t at) const {
    return arriving.template fetch<width>(at);
  }
  template <int width, typename Fetched>
  __device__ void add(const Normalizer<width>& normalized, const Fetched& fetched, std::int64_t at,
                      Pack<width>* sums) const {
    const Pack<width> value = Pack<width>::of(fetched.x);
    const Pack<width> gradient = arriving.sum(normalized, fetched, value);
    if constexpr (stores) gradient.store(stored + at);
    for (int k = 0; k < width; ++k) {
      sums[0].v[k] += gradient.v[k];
      sums[1].v[k] += gradient.v[k] * (value.v[k] - normalized.mean.v[k]);
    }
  }
};

// coefficients: factor, slope, offset of dx = factor * gradient + slope * (x - mean) + offset.
__global__ void merge_gradients_kernel(RowsAndChannels s, int parts, const float* partial, BatchNormBackward b,
                                       float* coefficients) {
  const std::int64_t c = merge_channel();
  double inverse = 0, gain = 0;
  float d_scale = 0, d_shift = 0;
  if (has_merged(s)) {
    inverse = static_cast<double>(b.inverse_deviation[c]);
    gain = static_cast<double>(b.scale[c]) * inverse;
    if (b.d_scale != nullptr && b.add_scale) d_scale = b.d_scale[c];
    if (b.d_shift != nullptr && b.add_shift) d_shift = b.d_shift[c];
  }
  const Merged<2> sums = merge_parts<2>(s, parts, partial);
  if (!has_merged(s)) return;
  const double sum = sums.v[0], product = sums.v[1];
  const auto count = static_cast<double>(s.rows);
  coefficients[c] = static_cast<float>(gain);
  coefficients[s.channels + c] = b.frozen ? 0.0F : static_cast<float>(-gain * inverse * inverse * product / count);
  coefficients[2 * s.channels + c] = b.frozen ? 0.0F : static_cast<float>(-gain * sum / count);
  if (b.d_scale != nullptr) b.d_scale[c] = static_cast<float>(product * inverse) + d_scale;
  if (b.d_shift != nullptr) b.d_shift[c] = static_cast<float>(sum) + d_shift;
}

// The same from sums that are known.
__global__ void known_gradients_kernel(RowsAndChannels s, BatchNormBackward b, float* coefficients) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= s.channels) return;
  const auto inverse = static_cast<double>(b.inverse_deviation[c]);
  const double gain = static_cast<double>(b.scale[c]) * inverse, count = static_cast<double>(b.all_rows);
  coefficients[c] = static_cast<float>(gain);
  coefficients[s.channels + c] = static_cast<float>(-gain * inverse * static_cast<double>(b.scale_sums[c]) / count);
  coefficients[2 * s.channels + c] = static_cast<float>(-gain * static_cast<double>(b.shift_sums[c]) / count);
}

template <typename Type, int width, typename Arriving>
__global__ void __launch_bounds__(kThreads)
    gradient_kernel(std::int64_t rows, ColumnGrid grid, Arriving arriving, Type* dx, const float* coefficients) {
  const int group = static_cast<int>(blockIdx.x) * grid.tx + static_cast<int>(threadIdx.x);
  if (group >= grid.groups) return;
  const int channel = group * width;
  const std::int64_t channels = static_cast<std::int64_t>(grid.groups) * width;
  const auto normalized = arriving.template start<width>(channel);
  const Pack<width> factor = Pack<width>::load(coefficients + channel);
  const Pack<width> slope = Pack<width>::load(coefficients + channels + channel);
  const Pack<width> offset = Pack<width>::load(coefficients + 2 * channels + channel);
  for_each_row<Arriving::kRows>(
      rows, grid, channels, channel, [&](std::int64_t at) { return arriving.template fetch<width>(at); },
      [&](std::int64_t at, const auto& fetched) {
        const Pack<width> value = Pack<width>::of(fetched.x);
        Pack<width> gradient = arriving.sum(normalized, fetched, value);
        for (int k = 0; k < width; ++k)
          gradient.v[k] =
              factor.v[k] * gradient.v[k] + (slope.v[k] * (value.v[k] - normalized.mean.v[k]) + offset.v[k]);
        gradient.store(dx + at);
      });
}

template <typename Type>
class Backward {
 public:
  Backward(cudaStream_t stream, const RowsAndChannels& shape, const BatchNormBackward& backward, std::byte* workspace)
      : stream_(stream), shape_(shape), b_(backward), partial_(reinterpret_cast<float*>(workspace)) {}

  void run() const {
    constexpr FusedFunction kNone = FusedFunction::none;
    if (b_.scale_sums != nullptr) return spread();
    if (b_.fused.function == kNone) return with_count<SlopeFrom::nothing, kNone>();
    with_fused(b_.fused.function, [&](auto function) {
      // Of the other functions the result does not tell the slope.
      if constexpr (function == FusedFunction::relu || function == FusedFunction::clip)
        if (b_.y != nullptr) return with_count<SlopeFrom::y, function>();
      if constexpr (function != kNone) with_count<SlopeFrom::x, function>();
    });
  }

 private:
  void spread() const {
    float* coefficients = partial_ + partial_floats<Type>(shape_, 2);
    const auto blocks = static_cast<unsigned>((shape_.channels + kThreads - 1) / kThreads);
    known_gradients_kernel<<<blocks, kThreads, 0, stream_>>>(shape_, b_, coefficients);
    second_pass(plain(b_.dy), coefficients);
  }

  template <SlopeFrom slope, FusedFunction function>
  void with_count() const {
    if (b_.second_dy != nullptr)
      passes<slope>(arriving<slope, function, true>(b_.dy));
    else
      passes<slope>(arriving<slope, function, false>(b_.dy));
  }

  template <SlopeFrom slope, FusedFunction function, bool two>
  [[nodiscard]] ArrivingGradient<Type, slope, function, two> arriving(const void* dy) const {
    return {static_cast<const Type*>(b_.x),
            static_cast<const Type*>(b_.y),
            static_cast<const Type*>(dy),
            static_cast<const Type*>(b_.second_dy),
            b_.mean,
            b_.inverse_deviation,
            b_.scale,
            b_.shift,
            numbers_of(b_.fused)};
  }
  [[nodiscard]] auto plain(const void* dy) const {
    return arriving<SlopeFrom::nothing, FusedFunction::none, false>(dy);
  }

  template <SlopeFrom slope, typename Arriving>
  void passes(const Arriving& arriving) const {
    const ColumnGrid grid = reduction_grid<Type>(shape_);
    auto* stored = static_cast<Type*>(b_.other_dx);
    // Only where y tells the slope there is a second input, whose gradient this is.
    if (slope == SlopeFrom::y && stored != nullptr)
      launch_reduce<Type>(stream_, shape_, grid, GradientTerms<Type, Arriving, slope == SlopeFrom::y>{arriving, stored},
                          partial_);
    else
      launch_reduce<Type>(stream_, shape_, grid, GradientTerms<Type, Arriving, false>{arriving, nullptr}, partial_);
    if (b_.dx == nullptr && b_.d_scale == nullptr && b_.d_shift == nullptr) return;
    // A multiple of 4 floats wherever packs are used: channels are then one.
    float* coefficients = partial_ + partial_floats<Type>(shape_, 2);
    merge_gradients_kernel<<<merge_blocks(shape_), merge_block(), 0, stream_>>>(shape_, static_cast<int>(grid.parts),
                                                                                partial_, b_, coefficients);
    if (b_.dx == nullptr) return;
    if (stored != nullptr)
      second_pass(plain(stored), coefficients);
    else
      second_pass(arriving, coefficients);
  }

  template <typename Arriving>
  void second_pass(const Arriving& gradient, const float* coefficients) const {
    const ColumnGrid grid = apply_grid<Type>(shape_);
    auto* dx = static_cast<Type*>(b_.dx);
    if (grid.width > 1)
      gradient_kernel<Type, kPackOf<Type>>
          <<<grid.grid(), grid.block(), 0, stream_>>>(shape_.rows, grid, gradient, dx, coefficients);
    else
      gradient_kernel<Type, 1>
          <<<grid.grid(), grid.block(), 0, stream_>>>(shape_.rows, grid, gradient, dx, coefficients);
  }

  cudaStream_t stream_;
  RowsAndChannels shape_;
  BatchNormBackward b_;
  float* partial_;
};

}  // namespace

std::size_t batch_norm_backward_bytes(const RowsAndChannels& s, Element element) {
  return with_element(element, [&](auto type) {
    return (partial_floats<decltype(type)>(s, 2) + 3 * static_cast<std::size_t>(s.channels)) * sizeof(float);
  });
}

cudaError_t launch_batch_norm_backward(cudaStream_t stream, const RowsAndChannels& s, Element element,
                                       const BatchNormBackward& backward, std::byte* workspace) {
  return with_element(element, [&](auto type) {
    Backward<decltype(type)>(stream, s, backward, workspace).run();
    return cudaGetLastError();
  });
}

}  // namespace tide::cuda
