// Convolutions of images as ones that suit the matrix units. An image has three channels, which
// no fast kernel takes; but with a stride of s, the s x s positions that a step of the window
// moves over can stand as channels of one position:
//
//   x0 x1 | x2 x3 | x4 ..      stride 2, window of 3: y0 = w0 x0 + w1 x1 + w2 x2
//   (x0,x1) (x2,x3) ..         stride 1, window of 2: y0 = (w0,w1) (x0,x1) + (w2,0) (x2,x3)
//
// Padding becomes zeros in the folded image, and channels are filled up with zeros.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/element.h"

namespace tide::cuda {

// One side: an image or a window, batch x height x width x channels. Folded position i has the
// positions i * stride - before .. + stride - 1.
struct Fold {
  std::int64_t batch;
  int height, width, channels;
  int stride_height, stride_width, before_height, before_width;
  int folded_height, folded_width, folded_channels;
};

[[nodiscard]] cudaError_t launch_fold(cudaStream_t stream, const Fold& fold, Element element, const void* from,
                                      void* to);
// A window of floats, folded to `element`; and the other way round, where `to` may be added to.
[[nodiscard]] cudaError_t launch_fold_window(cudaStream_t stream, const Fold& fold, const float* from, Element element,
                                             void* to);
[[nodiscard]] cudaError_t launch_unfold_window(cudaStream_t stream, const Fold& fold, Element element, const void* from,
                                               float* to, bool accumulate);

}  // namespace tide::cuda
