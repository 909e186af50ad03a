#include "backend/cuda/fold.h"
#include "backend/cuda/launch_grid.cuh"

namespace tide::cuda {
namespace {

// A thread for four channels of one folded position.
template <typename From, typename To>
__global__ void fold_kernel(Fold f, const From* from, To* to, std::int64_t count) {
  const std::int64_t index = thread_index();
  if (index >= count) return;
  const int groups = f.folded_channels / 4;
  std::int64_t place = index / groups;
  const int first = static_cast<int>(index - place * groups) * 4;
  const std::int64_t line = place / f.folded_width;
  const int j = static_cast<int>(place - line * f.folded_width);
  const std::int64_t n = line / f.folded_height;
  const int i = static_cast<int>(line - n * f.folded_height);
  const int row_channels = f.stride_width * f.channels;
  Pack<4> value;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int channel = first + k, v = channel / row_channels, rest = channel - v * row_channels;
    const int w = rest / f.channels, c = rest - w * f.channels;
    const int y = i * f.stride_height - f.before_height + v, x = j * f.stride_width - f.before_width + w;
    const bool inside = v < f.stride_height && y >= 0 && y < f.height && x >= 0 && x < f.width;
    value.v[k] = inside ? to_float(from[((n * f.height + y) * f.width + x) * f.channels + c]) : 0.0F;
  }
  value.store(to + 4 * index);
}

template <typename Type>
__global__ void unfold_kernel(Fold f, const Type* from, float* to, bool accumulate, std::int64_t count) {
  const std::int64_t index = thread_index();
  if (index >= count) return;
  const std::int64_t place = index / f.channels;
  const int c = static_cast<int>(index - place * f.channels);
  const std::int64_t line = place / f.width;
  const int x = static_cast<int>(place - line * f.width) + f.before_width;
  const std::int64_t n = line / f.height;
  const int y = static_cast<int>(line - n * f.height) + f.before_height;
  const int i = y / f.stride_height, v = y % f.stride_height, j = x / f.stride_width, w = x % f.stride_width;
  const float value = to_float(from[((n * f.folded_height + i) * f.folded_width + j) * f.folded_channels +
                                    (v * f.stride_width + w) * f.channels + c]);
  to[index] = accumulate ? to[index] + value : value;
}

template <typename From, typename To>
cudaError_t fold(cudaStream_t stream, const Fold& f, const From* from, To* to) {
  const std::int64_t count = f.batch * f.folded_height * f.folded_width * (f.folded_channels / 4);
  fold_kernel<<<blocks_for(count), kThreads, 0, stream>>>(f, from, to, count);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_fold(cudaStream_t stream, const Fold& f, Element element, const void* from, void* to) {
  return with_element(element, [&](auto type) {
    using Type = decltype(type);
    return fold(stream, f, static_cast<const Type*>(from), static_cast<Type*>(to));
  });
}

cudaError_t launch_fold_window(cudaStream_t stream, const Fold& f, const float* from, Element element, void* to) {
  return with_element(element, [&](auto type) { return fold(stream, f, from, static_cast<decltype(type)*>(to)); });
}

cudaError_t launch_unfold_window(cudaStream_t stream, const Fold& f, Element element, const void* from, float* to,
                                 bool accumulate) {
  const std::int64_t count = f.batch * f.height * f.width * f.channels;
  return with_element(element, [&](auto type) {
    unfold_kernel<<<blocks_for(count), kThreads, 0, stream>>>(f, static_cast<const decltype(type)*>(from), to,
                                                              accumulate, count);
    return cudaGetLastError();
  });
}

}  // namespace tide::cuda
