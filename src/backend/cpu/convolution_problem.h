// A convolution (or transposed convolution) as oneDNN names it, and its primitives. All
// ask for NHWC activations and leave the weight layout to oneDNN.
#pragma once

#include <dnnl.hpp>
#include <vector>

#include "network/network.h"

namespace tide::cpu {

struct ConvolutionProblem {
  bool transposed = false;
  ConvolutionOptions options;
  Shape input, output;  // with the batch

  static ConvolutionProblem of(const Layer& layer, const Shape& input_sample, std::int64_t batch);

  // Everything that a primitive depends on.
  [[nodiscard]] std::vector<std::int64_t> signature() const;
  [[nodiscard]] dnnl::memory::desc x() const;
  [[nodiscard]] dnnl::memory::desc y() const;
  [[nodiscard]] dnnl::memory::desc bias() const;
  // [groups x] output channels x input channels x height x width, in any layout.
  [[nodiscard]] dnnl::memory::desc weights() const;
  // The same dimensions in Tidepool's logical order.
  [[nodiscard]] dnnl::memory::desc logical_weights() const;

  // True for a 1x1 convolution that moves every position onto itself. Its backward is the
  // forward of `mirrored`, with weights transposed, which is faster than oneDNN's own.
  [[nodiscard]] bool is_mirrored() const;
  [[nodiscard]] ConvolutionProblem mirrored() const;

  // oneDNN 2.6 gathers the input of a strided 1x1 convolution into scratch rows of 16 channels each,
  // but books rows of the channels there are: with other counts a thread writes behind its part, into
  // the next one's. So such primitives are made for one thread, with bytes kept free behind their scratchpad.
  [[nodiscard]] bool overruns_scratch() const;
  [[nodiscard]] std::size_t scratch_slack(int threads) const;

  [[nodiscard]] dnnl::primitive_desc forward(const dnnl::engine& engine) const;
  [[nodiscard]] dnnl::primitive_desc backward_data(const dnnl::engine& engine) const;
  [[nodiscard]] dnnl::primitive_desc backward_weights(const dnnl::engine& engine) const;
};

}  // namespace tide::cpu
