#include "network/shapes.h"

#include <cmath>

namespace tide {
namespace {

// The rules below know nothing of the layer's name; infer_shapes puts it in front.
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw Error(format, std::forward<Args>(args)...);
}

// One direction of a window.
struct Span {
  const char* axis;
  std::int64_t kernel, stride, before, after, dilation;

  [[nodiscard]] std::int64_t effective() const { return checked_add(checked_multiply(dilation, kernel - 1), 1); }
};

Span vertical(const Window& w) {
  return {"height", w.kernel_height, w.stride_height, w.pad_top, w.pad_bottom, w.dilation_height};
}

Span horizontal(const Window& w) {
  return {"width", w.kernel_width, w.stride_width, w.pad_left, w.pad_right, w.dilation_width};
}

void check_span(const Span& span) {
  require(span.kernel >= 1, "kernel {} is {}; it must be at least 1", span.axis, span.kernel);
  require(span.stride >= 1, "stride {} is {}; it must be at least 1", span.axis, span.stride);
  require(span.dilation >= 1, "dilation {} is {}; it must be at least 1", span.axis, span.dilation);
  require(span.before >= 0 && span.after >= 0, "padding of the {} is {} and {}; it must not be negative", span.axis,
          span.before, span.after);
}

std::int64_t window_size(const Span& span, std::int64_t in, bool round_up) {
  const std::int64_t padded = checked_add(checked_add(in, span.before), span.after);
  const std::int64_t effective = span.effective();
  require(padded >= effective,
          "a window of {} {} does not fit into the padded input's {}; make the window smaller or the input larger",
          span.axis, effective, padded);
  const std::int64_t room = padded - effective;
  std::int64_t out = room / span.stride + 1;
  // A rounded-up window must start inside the input or the padding before it, or it would be empty.
  if (round_up && room % span.stride != 0 && checked_multiply(out, span.stride) < checked_add(in, span.before)) ++out;
  return out;
}

std::int64_t transposed_size(const Span& span, std::int64_t in) {
  const std::int64_t full = checked_add(checked_multiply(in - 1, span.stride), span.effective());
  const std::int64_t out = full - checked_add(span.before, span.after);
  require(out >= 1, "the padding leaves an output {} of {}; use less padding or a larger kernel", span.axis, out);
  return out;
}

void check_channels(const ConvolutionOptions& options, const Shape& x) {
  require(options.channels >= 1, "it has {} output channels; give at least 1", options.channels);
  require(options.groups >= 1, "it has {} groups; give at least 1", options.groups);
  require(x.channels() % options.groups == 0 && options.channels % options.groups == 0,
          "{} groups must divide both its {} input and its {} output channels", options.groups, x.channels(),
          options.channels);
}

Shape convolution(const ConvolutionOptions& options, const Shape& x, bool transposed) {
  check_channels(options, x);
  const Span rows = vertical(options.window), columns = horizontal(options.window);
  check_span(rows);
  check_span(columns);
  if (transposed) return {1, options.channels, transposed_size(rows, x.height()), transposed_size(columns, x.width())};
  return {1, options.channels, window_size(rows, x.height(), false), window_size(columns, x.width(), false)};
}

// Every pooling window must hold at least one element of the input.
void check_pool_span(const Span& span, std::int64_t in) {
  check_span(span);
  const std::int64_t effective = span.effective();
  require(span.before < effective && span.after < effective,
          "padding of the {} is {} and {}; it must be smaller than the window of {}", span.axis, span.before,
          span.after, effective);
  require(span.kernel == 1 || span.dilation <= in, "dilation {} is {}; it must not exceed the input's {}", span.axis,
          span.dilation, in);
}

Shape pool(const PoolOptions& options, const Shape& x, bool maximum) {
  const Span rows = vertical(options.window), columns = horizontal(options.window);
  check_pool_span(rows, x.height());
  check_pool_span(columns, x.width());
  // The position of the maximum within its window is kept in one byte.
  require(!maximum || checked_multiply(rows.kernel, columns.kernel) <= 256,
          "a max pool window of {}x{} has more than 256 positions; use several pools", rows.kernel, columns.kernel);
  return {1, x.channels(), window_size(rows, x.height(), options.round_up),
          window_size(columns, x.width(), options.round_up)};
}

Shape input(const InputOptions& options) {
  const Shape& sample = options.sample;
  require(sample.batch() == 1, "its sample has batch {}; give the shape of one sample (batch 1)", sample.batch());
  require(sample.channels() >= 1 && sample.height() >= 1 && sample.width() >= 1,
          "its sample is {}; every dimension must be at least 1", sample_text(sample));
  return sample;
}

Shape fully_connected(const FullyConnectedOptions& options) {
  require(options.channels >= 1, "it has {} output channels; give at least 1", options.channels);
  return {1, options.channels, 1, 1};
}

Shape softmax(const SoftmaxOptions& options, const Shape& x) {
  require(options.label_smoothing >= 0 && options.label_smoothing < 1,
          "label smoothing is {}; it must be at least 0 and below 1", options.label_smoothing);
  require(std::isfinite(options.weight) && options.weight > 0, "its weight is {}; it must be finite and above 0",
          options.weight);
  require(options.label_offset >= 0, "label offset is {}; it must not be negative", options.label_offset);
  return x;
}

Shape lrn(const LrnOptions& options, const Shape& x) {
  require(options.size >= 1 && options.size % 2 == 1, "its size is {}; it must be odd and at least 1", options.size);
  require(std::isfinite(options.alpha) && options.alpha >= 0, "alpha is {}; it must be finite and not negative",
          options.alpha);
  require(std::isfinite(options.beta), "beta is {}; it must be finite", options.beta);
  require(std::isfinite(options.k) && options.k > 0, "k is {}; it must be finite and above 0", options.k);
  return x;
}

Shape batch_norm(const BatchNormOptions& options, const Shape& x) {
  require(std::isfinite(options.epsilon) && options.epsilon > 0, "epsilon is {}; it must be finite and above 0",
          options.epsilon);
  require(options.momentum >= 0 && options.momentum <= 1, "momentum is {}; it must be between 0 and 1",
          options.momentum);
  return x;
}

Shape dropout(const DropoutOptions& options, const Shape& x) {
  require(options.rate >= 0 && options.rate < 1, "its rate is {}; it must be at least 0 and below 1", options.rate);
  return x;
}

Shape elementwise(const std::vector<Shape>& inputs) {
  for (std::size_t i = 1; i < inputs.size(); ++i)
    require(inputs[i] == inputs[0], "input {} is {} but input 1 is {}; make them equal", i + 1, sample_text(inputs[i]),
            sample_text(inputs[0]));
  return inputs[0];
}

Shape concat(const std::vector<Shape>& inputs) {
  Shape sum = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    require(inputs[i].height() == sum.height() && inputs[i].width() == sum.width(),
            "input {} is {}x{} high and wide but input 1 is {}x{}; make them equal", i + 1, inputs[i].height(),
            inputs[i].width(), sum.height(), sum.width());
    sum = sum.with_extent(1, checked_add(sum.channels(), inputs[i].channels()));
  }
  return sum;
}

std::vector<Shape> split(const SplitOptions& options, const Shape& x) {
  require(!options.channels.empty(), "it has no outputs; list the channels of each");
  std::vector<Shape> outputs;
  std::int64_t sum = 0;
  for (const std::int64_t channels : options.channels) {
    require(channels >= 1, "an output has {} channels; give at least 1", channels);
    sum = checked_add(sum, channels);
    outputs.push_back({1, channels, x.height(), x.width()});
  }
  require(sum == x.channels(), "its outputs have {} channels together but its input has {}; make them equal", sum,
          x.channels());
  return outputs;
}

std::vector<Shape> fork(const ForkOptions& options, const Shape& x) {
  require(options.branches >= 1, "it has {} branches; give at least 1", options.branches);
  return std::vector<Shape>(static_cast<std::size_t>(options.branches), x);
}

void check_input_count(LayerKind kind, std::size_t count) {
  switch (kind) {
    case LayerKind::input: require(count == 0, "it has {} inputs; an input layer takes none", count); break;
    case LayerKind::add:
    case LayerKind::concat: require(count >= 2, "it has {} inputs; give two or more", count); break;
    case LayerKind::multiply: require(count == 2, "it has {} inputs; give two", count); break;
    default: require(count == 1, "it has {} inputs; give one", count); break;
  }
}

std::vector<Shape> infer(const Layer& layer, const std::vector<Shape>& inputs) {
  require(layer.options.index() == default_options(layer.kind).index(),
          "its options are those of another kind of layer");
  check_input_count(layer.kind, inputs.size());
  switch (layer.kind) {
    case LayerKind::input: return {input(layer.as<InputOptions>())};
    case LayerKind::convolution: return {convolution(layer.as<ConvolutionOptions>(), inputs[0], false)};
    case LayerKind::transposed_convolution: return {convolution(layer.as<ConvolutionOptions>(), inputs[0], true)};
    case LayerKind::fully_connected: return {fully_connected(layer.as<FullyConnectedOptions>())};
    case LayerKind::max_pool: return {pool(layer.as<PoolOptions>(), inputs[0], true)};
    case LayerKind::average_pool: return {pool(layer.as<PoolOptions>(), inputs[0], false)};
    case LayerKind::global_average_pool: return {Shape{1, inputs[0].channels(), 1, 1}};
    case LayerKind::relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh: return {inputs[0]};
    case LayerKind::softmax_cross_entropy: return {softmax(layer.as<SoftmaxOptions>(), inputs[0])};
    case LayerKind::lrn: return {lrn(layer.as<LrnOptions>(), inputs[0])};
    case LayerKind::batch_norm: return {batch_norm(layer.as<BatchNormOptions>(), inputs[0])};
    case LayerKind::dropout: return {dropout(layer.as<DropoutOptions>(), inputs[0])};
    case LayerKind::add:
    case LayerKind::multiply: return {elementwise(inputs)};
    case LayerKind::concat: return {concat(inputs)};
    case LayerKind::split: return split(layer.as<SplitOptions>(), inputs[0]);
    case LayerKind::flatten: return {Shape{1, inputs[0].per_sample(), 1, 1}};
    case LayerKind::fork: return fork(layer.as<ForkOptions>(), inputs[0]);
  }
  throw Error("it is of no known kind");
}

}  // namespace

std::vector<Shape> infer_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  try {
    std::vector<Shape> outputs = infer(layer, inputs);
    for (const Shape& shape : outputs) static_cast<void>(shape.elements());  // throws where it overflows
    return outputs;
  } catch (const Error& error) {
    throw Error("layer '{}' ({}): {}", layer.name, kind_name(layer.kind), error.what());
  }
}

}  // namespace tide
