#include "backend/cpu/convolution_problem.h"

#include <omp.h>

#include <algorithm>

#include "backend/cpu/program.h"

namespace tide::cpu {
namespace {

using Dims = dnnl::memory::dims;
using Layout = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
constexpr auto kTransposed = dnnl::algorithm::deconvolution_direct;

Layout activation(const Shape& s) { return {{s.batch(), s.channels(), s.height(), s.width()}, kFloat, Tag::nhwc}; }

// The window in oneDNN's terms, where a dilation of 0 means dense.
struct WindowDims {
  Dims strides, dilation, before, after;
  explicit WindowDims(const Window& w)
      : strides{w.stride_height, w.stride_width},
        dilation{w.dilation_height - 1, w.dilation_width - 1},
        before{w.pad_top, w.pad_left},
        after{w.pad_bottom, w.pad_right} {}
};

// oneDNN's convolution and deconvolution differ in their types only.
template <typename Forward>
typename Forward::primitive_desc forward_of(const ConvolutionProblem& p, dnnl::algorithm kind,
                                            const dnnl::engine& engine) {
  const WindowDims w(p.options.window);
  constexpr auto kTraining = dnnl::prop_kind::forward_training;
  const auto description = p.options.bias ? typename Forward::desc(kTraining, kind, p.x(), p.weights(), p.bias(), p.y(),
                                                                   w.strides, w.dilation, w.before, w.after)
                                          : typename Forward::desc(kTraining, kind, p.x(), p.weights(), p.y(),
                                                                   w.strides, w.dilation, w.before, w.after);
  return {description, user_scratchpad(), engine};
}

template <typename Forward, typename Backward>
dnnl::primitive_desc backward_data_of(const ConvolutionProblem& p, dnnl::algorithm kind, const dnnl::engine& engine) {
  const WindowDims w(p.options.window);
  const typename Backward::desc description(kind, p.x(), p.weights(), p.y(), w.strides, w.dilation, w.before, w.after);
  return
      typename Backward::primitive_desc(description, user_scratchpad(), engine, forward_of<Forward>(p, kind, engine));
}

template <typename Forward, typename Backward>
dnnl::primitive_desc backward_weights_of(const ConvolutionProblem& p, dnnl::algorithm kind,
                                         const dnnl::engine& engine) {
  const WindowDims w(p.options.window);
  const auto description =
      p.options.bias
          ? typename Backward::desc(kind, p.x(), p.weights(), p.bias(), p.y(), w.strides, w.dilation, w.before, w.after)
          : typename Backward::desc(kind, p.x(), p.weights(), p.y(), w.strides, w.dilation, w.before, w.after);
  return
      typename Backward::primitive_desc(description, user_scratchpad(), engine, forward_of<Forward>(p, kind, engine));
}

// Primitives that are described meanwhile are for one thread.
class OneThread {
 public:
  explicit OneThread(bool wanted) : before_(omp_get_max_threads()) {
    if (wanted) omp_set_num_threads(1);
  }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace

ConvolutionProblem ConvolutionProblem::of(const Layer& layer, const Shape& input_sample, std::int64_t batch) {
  return {layer.kind == LayerKind::transposed_convolution, layer.as<ConvolutionOptions>(),
          input_sample.with_batch(batch), layer.outputs[0].with_batch(batch)};
}

std::vector<std::int64_t> ConvolutionProblem::signature() const {
  const Window& w = options.window;
  return {transposed ? 1 : 0, options.bias ? 1 : 0, options.groups,    input.batch(),     input.channels(),
          input.height(),     input.width(),        output.channels(), output.height(),   output.width(),
          w.kernel_height,    w.kernel_width,       w.stride_height,   w.stride_width,    w.pad_top,
          w.pad_left,         w.pad_bottom,         w.pad_right,       w.dilation_height, w.dilation_width};
}

Layout ConvolutionProblem::x() const { return activation(input); }

Layout ConvolutionProblem::y() const { return activation(output); }

Layout ConvolutionProblem::bias() const { return {{output.channels()}, kFloat, Tag::a}; }

Layout ConvolutionProblem::weights() const {
  const std::int64_t to = output.channels() / options.groups, from = input.channels() / options.groups;
  const std::int64_t height = options.window.kernel_height, width = options.window.kernel_width;
  if (options.groups == 1) return {{to, from, height, width}, kFloat, Tag::any};
  return {{options.groups, to, from, height, width}, kFloat, Tag::any};
}

Layout ConvolutionProblem::logical_weights() const {
  const Layout any = weights();
  Dims dims = any.dims();
  const std::int64_t width = options.window.kernel_width, area = options.window.kernel_height * width;
  const std::int64_t to = output.channels() / options.groups, from = input.channels() / options.groups;
  // A transposed convolution is kept input channels first.
  Dims strides = transposed ? Dims{area, to * area, width, 1} : Dims{from * area, area, width, 1};
  if (options.groups > 1) strides.insert(strides.begin(), to * from * area);
  return {dims, kFloat, strides};
}

bool ConvolutionProblem::is_mirrored() const {
  return !transposed && options.groups == 1 && options.window == Window::square(1);
}

ConvolutionProblem ConvolutionProblem::mirrored() const {
  ConvolutionProblem mirror{transposed, options, output, input};
  mirror.options.channels = input.channels();
  mirror.options.bias = false;
  return mirror;
}

bool ConvolutionProblem::overruns_scratch() const {
  const Window& w = options.window;
  const bool strided = w.stride_height > 1 || w.stride_width > 1;
  const bool even = input.channels() % 16 == 0 && output.channels() % 16 == 0;
  return w.kernel_height == 1 && w.kernel_width == 1 && strided && !even;
}

std::size_t ConvolutionProblem::scratch_slack(int threads) const {
  if (!overruns_scratch()) return 0;
  const std::int64_t positions = std::max(input.height() * input.width(), output.height() * output.width());
  const std::int64_t channels = (std::max(input.channels(), output.channels()) + 15) / 16 * 16;
  return Bytes(checked_multiply(checked_multiply(positions, channels), 4 * std::int64_t{threads})).size();
}

dnnl::primitive_desc ConvolutionProblem::forward(const dnnl::engine& engine) const {
  const OneThread alone(overruns_scratch());
  if (transposed) return forward_of<dnnl::deconvolution_forward>(*this, kTransposed, engine);
  return forward_of<dnnl::convolution_forward>(*this, kDirect, engine);
}

dnnl::primitive_desc ConvolutionProblem::backward_data(const dnnl::engine& engine) const {
  const OneThread alone(overruns_scratch());
  if (transposed)
    return backward_data_of<dnnl::deconvolution_forward, dnnl::deconvolution_backward_data>(*this, kTransposed, engine);
  return backward_data_of<dnnl::convolution_forward, dnnl::convolution_backward_data>(*this, kDirect, engine);
}

dnnl::primitive_desc ConvolutionProblem::backward_weights(const dnnl::engine& engine) const {
  const OneThread alone(overruns_scratch());
  if (transposed)
    return backward_weights_of<dnnl::deconvolution_forward, dnnl::deconvolution_backward_weights>(*this, kTransposed,
                                                                                                  engine);
  return backward_weights_of<dnnl::convolution_forward, dnnl::convolution_backward_weights>(*this, kDirect, engine);
}

}  // namespace tide::cpu
