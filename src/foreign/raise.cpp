#include "foreign/raise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "network/kind.h"
#include "network/reordered.h"

namespace tide {
namespace {

constexpr std::int64_t kOperators = 21;

template <typename Number>
ForeignTensor tensor_of(ForeignType type, std::vector<std::int64_t> shape, std::vector<Number> values) {
  const auto owner = std::make_shared<const std::vector<Number>>(std::move(values));
  return {type, std::move(shape), std::as_bytes(std::span(*owner)), owner};
}

class Raiser {
 public:
  Raiser(const NetworkPtr& network, const std::vector<WeightName>& names,
         const std::map<std::string, std::vector<float>>& values)
      : network_(*network), values_(values) {
    for (const WeightName& name : names) names_[name.parameter] = &name;
  }

  RaisedGraph run() {
    result_.graph.name = network_.name;
    result_.graph.opset = kOperators;
    for (std::size_t l = 0; l < network_.layers.size(); ++l) raise(LayerId(l));
    give_outputs();
    if (drop_paths_ > 0)
      result_.notes.push_back(
          fmt::format("{} drop paths are left out, for which ONNX has no word; answers are the same", drop_paths_));
    if (frozen_norms_ > 0)
      result_.notes.push_back(
          fmt::format("{} batch norms keep their statistics in training, which the file does not say", frozen_norms_));
    return std::move(result_);
  }

 private:
  using Names = std::vector<std::string>;

  [[noreturn]] static void refuse(const Layer& layer, std::string_view why) {
    throw Error("layer '{}': {} is not possible in ONNX; a network file (net.json) holds it", layer.name, why);
  }

  // Values have the names of their layers.
  [[nodiscard]] std::string name_of(Value value) const {
    const Layer& layer = network_.layer(value.layer);
    if (const auto other = renamed_.find(value); other != renamed_.end()) return other->second;
    return layer.outputs.size() == 1 ? layer.name : fmt::format("{}:{}", layer.name, value.output);
  }
  [[nodiscard]] std::string input(const Layer& layer, std::size_t i = 0) const { return name_of(layer.inputs.at(i)); }
  [[nodiscard]] const Shape& shape(const Layer& layer, std::size_t i = 0) const {
    return network_.shape(layer.inputs.at(i));
  }

  ForeignNode& node(const Layer& layer, std::string op, Names inputs, Names outputs) {
    ForeignNode made;
    made.op = std::move(op);
    made.name = outputs.front() == layer.name ? layer.name : outputs.front();
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    return result_.graph.nodes.emplace_back(std::move(made));
  }
  ForeignNode& node(const Layer& layer, std::string op, Names inputs) {
    return node(layer, std::move(op), std::move(inputs), {layer.name});
  }

  std::string constant(const Layer& layer, const char* what, ForeignTensor tensor) {
    std::string name = fmt::format("{}:{}", layer.name, what);
    result_.graph.constants.emplace(name, std::move(tensor));
    return name;
  }
  std::string whole_numbers(const Layer& layer, const char* what, std::vector<std::int64_t> numbers) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    return constant(layer, what, tensor_of<std::int64_t>(ForeignType::i64, {count}, std::move(numbers)));
  }
  std::string number(const Layer& layer, const char* what, double value) {
    return constant(layer, what, tensor_of<float>(ForeignType::f32, {}, {static_cast<float>(value)}));
  }
  // The batch stays open.
  std::string reshaped(const Layer& layer, const std::string& from, std::vector<std::int64_t> sample,
                       const std::string& to) {
    sample.insert(sample.begin(), 0);
    node(layer, "Reshape", {from, whole_numbers(layer, (to + ".shape").c_str(), std::move(sample))}, {to});
    return to;
  }

  // An array under the name that users know. Where `extents` are given it is seen so, under a name of its own if need
  // be.
  std::string array(const Layer& layer, ParameterRole role, const std::vector<std::int64_t>& extents = {}) {
    const Parameter& parameter = network_.parameters[layer.parameter(role).index()];
    const auto known = names_.find(parameter.name);
    const WeightName own{parameter.name, parameter.name, {}, {}};
    const WeightName& name = known != names_.end() ? *known->second : own;
    auto& constants = result_.graph.constants;
    if (!constants.contains(name.array)) {
      const auto values = values_.find(parameter.name);
      if (values == values_.end()) throw Error("parameter '{}' has no values", parameter.name);
      std::vector<std::int64_t> shape = name.seen_as;
      if (shape.empty()) shape = array_extents(network_, parameter);
      if (!extents.empty() && name.seen_as.empty()) shape = extents;
      const bool matrix = layer.kind == LayerKind::fully_connected && role == ParameterRole::weight;
      if (matrix && name.seen_as.empty()) shape = {parameter.shape.batch(), parameter.shape.per_sample()};
      constants.emplace(name.array, tensor_of<float>(ForeignType::f32, shape,
                                                     to_array_order(name, std::span<const float>(values->second))));
      if (parameter.frozen) result_.graph.frozen.push_back(name.array);
    }
    return name.array;
  }
  // Whether it lies the other way round in the user's file: {in, out}.
  [[nodiscard]] bool is_turned(const Layer& layer) const {
    const auto known = names_.find(network_.parameters[layer.parameter(ParameterRole::weight).index()].name);
    return known != names_.end() && !known->second->axes.empty();
  }

  void raise(LayerId id) {
    const Layer& layer = network_.layer(id);
    switch (layer.kind) {
      case LayerKind::input: return raise_input(layer);
      case LayerKind::convolution: return raise_convolution(layer, "Conv");
      case LayerKind::transposed_convolution: return raise_convolution(layer, "ConvTranspose");
      case LayerKind::fully_connected: return raise_product(layer);
      case LayerKind::max_pool:
      case LayerKind::average_pool: return raise_pool(layer);
      case LayerKind::global_average_pool: return raise_global_average(layer);
      case LayerKind::relu: return raise_plain(layer, "Relu");
      case LayerKind::sigmoid: return raise_plain(layer, "Sigmoid");
      case LayerKind::tanh: return raise_plain(layer, "Tanh");
      case LayerKind::lrn: return raise_lrn(layer);
      case LayerKind::batch_norm: return raise_batch_norm(layer);
      case LayerKind::dropout:
        node(layer, "Dropout", {input(layer), number(layer, "ratio", layer.as<DropoutOptions>().rate)});
        return;
      case LayerKind::add: return raise_chain(layer, "Add");
      case LayerKind::multiply: return raise_chain(layer, "Mul");
      case LayerKind::concat: {
        Names inputs;
        for (std::size_t i = 0; i < layer.inputs.size(); ++i) inputs.push_back(with_rank(layer, i, layer.outputs[0]));
        node(layer, "Concat", std::move(inputs)).attributes["axis"] = std::int64_t{1};
        return;
      }
      case LayerKind::split: return raise_split(id, layer);
      case LayerKind::flatten: return raise_flatten(layer);
      case LayerKind::fork:
        for (std::size_t i = 0; i < layer.outputs.size(); ++i)
          renamed_[{id, static_cast<std::int32_t>(i)}] = input(layer);
        return;
      case LayerKind::group_norm: return raise_group_norm(layer);
      case LayerKind::activation: return raise_activation(layer);
      case LayerKind::combine: return raise_combine(layer);
      case LayerKind::scale: return raise_scale(layer);
      case LayerKind::mean: return raise_mean(layer);
      case LayerKind::adaptive_average_pool: return raise_adaptive(layer);
      case LayerKind::resize: return raise_resize(layer);
      case LayerKind::pad: return raise_pad(layer);
      case LayerKind::channel_shuffle: return raise_shuffle(layer);
      case LayerKind::transpose:
        node(layer, "Transpose", {input(layer)}).attributes["perm"] = layer.as<TransposeOptions>().axes;
        return;
      case LayerKind::reshape: {
        reshaped(layer, input(layer), sample_of(layer.outputs[0]), layer.name);
        return;
      }
      case LayerKind::drop_path:
        renamed_[{id, 0}] = input(layer);
        ++drop_paths_;
        return;
      case LayerKind::softmax:
        node(layer, "Softmax", {input(layer)}).attributes["axis"] = layer.as<SoftmaxAxisOptions>().axis;
        return;
      case LayerKind::l2_normalize: return raise_l2(layer);
      case LayerKind::softmax_cross_entropy:
      case LayerKind::sigmoid_cross_entropy:
      case LayerKind::mean_squared_error: answers_.push_back(layer.inputs[0]); return;
    }
    refuse(layer, "its kind");
  }

  static std::vector<std::int64_t> sample_of(const Shape& shape) {
    return {shape.extents().begin() + 1, shape.extents().end()};
  }

  // Losses have no layer behind them; without one it is what nobody reads.
  void give_outputs() {
    if (answers_.empty()) {
      std::vector<std::vector<bool>> read(network_.layers.size());
      for (std::size_t l = 0; l < network_.layers.size(); ++l) read[l].resize(network_.layers[l].outputs.size());
      for (const Layer& layer : network_.layers)
        for (const Value value : layer.inputs) read[value.layer.index()][static_cast<std::size_t>(value.output)] = true;
      for (std::size_t l = 0; l < network_.layers.size(); ++l)
        for (std::size_t o = 0; o < read[l].size(); ++o)
          if (!read[l][o]) answers_.push_back({LayerId(l), static_cast<std::int32_t>(o)});
    }
    for (const Value value : answers_) {
      const std::string name = name_of(value);
      auto& outputs = result_.graph.outputs;
      if (std::find(outputs.begin(), outputs.end(), name) == outputs.end()) outputs.push_back(name);
    }
  }

  void raise_input(const Layer& layer) {
    std::vector<std::int64_t> extents = sample_of(layer.outputs[0]);
    extents.insert(extents.begin(), -1);
    result_.graph.inputs.push_back({layer.name, ForeignType::f32, std::move(extents)});
  }

  void raise_plain(const Layer& layer, const char* op) { node(layer, op, {input(layer)}); }

  // Vectors are images of one pixel.
  std::string as_image(const Layer& layer) {
    const Shape& x = shape(layer);
    if (x.rank() == 4) return input(layer);
    return reshaped(layer, input(layer), {x.channels(), 1, 1}, layer.name + ":image");
  }

  static void give_window(ForeignNode& to, const Window& w, bool with_kernel) {
    if (with_kernel) to.attributes["kernel_shape"] = std::vector{w.kernel_height, w.kernel_width};
    to.attributes["strides"] = std::vector{w.stride_height, w.stride_width};
    to.attributes["pads"] = std::vector{w.pad_top, w.pad_left, w.pad_bottom, w.pad_right};
    to.attributes["dilations"] = std::vector{w.dilation_height, w.dilation_width};
  }

  void raise_convolution(const Layer& layer, const char* op) {
    const auto& options = layer.as<ConvolutionOptions>();
    Names inputs{as_image(layer), array(layer, ParameterRole::weight)};
    if (options.bias) inputs.push_back(array(layer, ParameterRole::bias));
    ForeignNode& made = node(layer, op, std::move(inputs));
    give_window(made, options.window, true);
    made.attributes["group"] = options.groups;
  }

  void raise_product(const Layer& layer) {
    std::string from = input(layer);
    if (shape(layer).rank() != 2) {
      ForeignNode& flat = node(layer, "Flatten", {from}, {layer.name + ":flat"});
      flat.attributes["axis"] = std::int64_t{1};
      from = layer.name + ":flat";
    }
    Names inputs{from, array(layer, ParameterRole::weight)};
    if (layer.as<FullyConnectedOptions>().bias) inputs.push_back(array(layer, ParameterRole::bias));
    node(layer, "Gemm", std::move(inputs)).attributes["transB"] = std::int64_t{is_turned(layer) ? 0 : 1};
  }

  // A vector of memory order, channels last.
  void raise_flatten(const Layer& layer) {
    std::string from = input(layer);
    const Shape& x = shape(layer);
    if (x.rank() > 2 && x.positions() > 1 && x.channels() > 1) {
      std::vector<std::int64_t> order{0};
      for (std::size_t axis = 2; axis < x.rank(); ++axis) order.push_back(static_cast<std::int64_t>(axis));
      order.push_back(1);
      node(layer, "Transpose", {from}, {layer.name + ":last"}).attributes["perm"] = std::move(order);
      from = layer.name + ":last";
    }
    node(layer, "Flatten", {from}).attributes["axis"] = std::int64_t{1};
  }

  void raise_global_average(const Layer& layer) {
    const std::size_t rank = shape(layer).rank();
    if (rank == 2 || rank == 4) {
      node(layer, "GlobalAveragePool", {as_image(layer)});
      return;
    }
    std::vector<std::int64_t> axes;
    for (std::size_t axis = 2; axis < rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
    node(layer, "ReduceMean", {input(layer), whole_numbers(layer, "axes", std::move(axes))}, {layer.name + ":mean"})
        .attributes["keepdims"] = std::int64_t{1};
    reshaped(layer, layer.name + ":mean", sample_of(layer.outputs[0]), layer.name);
  }

  void raise_pool(const Layer& layer) {
    const auto& options = layer.as<PoolOptions>();
    const bool average = layer.kind == LayerKind::average_pool;
    ForeignNode& made = node(layer, average ? "AveragePool" : "MaxPool", {as_image(layer)});
    give_window(made, options.window, true);
    made.attributes["ceil_mode"] = std::int64_t{options.round_up ? 1 : 0};
    if (average) made.attributes["count_include_pad"] = std::int64_t{options.count_padding ? 1 : 0};
  }

  void raise_lrn(const Layer& layer) {
    const auto& options = layer.as<LrnOptions>();
    ForeignNode& made = node(layer, "LRN", {input(layer)});
    made.attributes = {{"size", options.size}, {"alpha", options.alpha}, {"beta", options.beta}, {"bias", options.k}};
  }

  void raise_batch_norm(const Layer& layer) {
    const auto& options = layer.as<BatchNormOptions>();
    if (options.frozen_statistics) ++frozen_norms_;
    ForeignNode& made =
        node(layer, "BatchNormalization",
             {input(layer), array(layer, ParameterRole::scale), array(layer, ParameterRole::shift),
              array(layer, ParameterRole::running_mean), array(layer, ParameterRole::running_variance)});
    made.attributes = {{"epsilon", options.epsilon}, {"momentum", 1 - options.momentum}};
  }

  void raise_group_norm(const Layer& layer) {
    const auto& options = layer.as<GroupNormOptions>();
    ForeignNode& made = node(layer, "GroupNormalization",
                             {input(layer), array(layer, ParameterRole::scale), array(layer, ParameterRole::shift)});
    made.attributes = {{"epsilon", options.epsilon}, {"num_groups", options.groups}};
  }

  // Layers join vectors and images of one pixel; ONNX spreads them over each other.
  std::string with_rank(const Layer& layer, std::size_t i, const Shape& joined) {
    if (shape(layer, i).rank() == joined.rank()) return input(layer, i);
    std::vector<std::int64_t> sample(joined.rank() - 1, 1);
    sample[0] = shape(layer, i).channels();
    return reshaped(layer, input(layer, i), std::move(sample), fmt::format("{}:in{}", layer.name, i));
  }

  void raise_chain(const Layer& layer, const char* op) {
    std::string sum = with_rank(layer, 0, layer.outputs[0]);
    for (std::size_t i = 1; i < layer.inputs.size(); ++i) {
      const bool last = i + 1 == layer.inputs.size();
      const std::string to = last ? layer.name : fmt::format("{}:{}", layer.name, i);
      node(layer, op, {sum, with_rank(layer, i, layer.outputs[0])}, {to});
      sum = to;
    }
  }

  void raise_split(LayerId id, const Layer& layer) {
    Names outputs;
    for (std::size_t i = 0; i < layer.outputs.size(); ++i)
      outputs.push_back(name_of({id, static_cast<std::int32_t>(i)}));
    ForeignNode& made =
        node(layer, "Split", {input(layer), whole_numbers(layer, "sizes", layer.as<SplitOptions>().channels)},
             std::move(outputs));
    made.name = layer.name;
    made.attributes["axis"] = std::int64_t{1};
  }

  void raise_activation(const Layer& layer) {
    const auto& options = layer.as<ActivationOptions>();
    const std::string x = input(layer);
    using F = ActivationFunction;
    switch (options.function) {
      case F::clip:
        node(layer, "Clip", {x, number(layer, "min", options.alpha), number(layer, "max", options.beta)});
        return;
      case F::leaky_relu: node(layer, "LeakyRelu", {x}).attributes["alpha"] = options.alpha; return;
      case F::elu: node(layer, "Elu", {x}).attributes["alpha"] = options.alpha; return;
      case F::silu:
        node(layer, "Sigmoid", {x}, {layer.name + ":gate"});
        node(layer, "Mul", {x, layer.name + ":gate"});
        return;
      case F::gelu:
      case F::gelu_tanh:
        node(layer, "Gelu", {x}).attributes["approximate"] = std::string(options.function == F::gelu ? "none" : "tanh");
        return;
      case F::hard_sigmoid:
        node(layer, "HardSigmoid", {x}).attributes = {{"alpha", options.alpha}, {"beta", options.beta}};
        return;
      case F::hard_swish: return raise_plain(layer, "HardSwish");
      case F::mish: return raise_plain(layer, "Mish");
      case F::softplus: return raise_softplus(layer, options);
      case F::affine: return raise_affine(layer, options);
      case F::square: node(layer, "Mul", {x, x}); return;
      case F::exp: return raise_plain(layer, "Exp");
      case F::sqrt: return raise_plain(layer, "Sqrt");
      case F::abs: return raise_plain(layer, "Abs");
    }
    refuse(layer, "its function");
  }

  void raise_softplus(const Layer& layer, const ActivationOptions& options) {
    constexpr double kLinearInFloats = 16;  // from there on both are the same
    if (options.beta < kLinearInFloats)
      refuse(layer, fmt::format("a softplus that is linear from {} on", options.beta));
    const double alpha = options.alpha;
    if (alpha == 1) return raise_plain(layer, "Softplus");
    const std::string factor = number(layer, "factor", alpha);
    node(layer, "Mul", {input(layer), factor}, {layer.name + ":stretched"});
    node(layer, "Softplus", {layer.name + ":stretched"}, {layer.name + ":plus"});
    node(layer, "Div", {layer.name + ":plus", factor});
  }

  void raise_affine(const Layer& layer, const ActivationOptions& options) {
    const bool shifted = options.beta != 0;
    std::string x = input(layer);
    if (options.alpha != 1 || !shifted) {
      const std::string to = shifted ? layer.name + ":scaled" : layer.name;
      node(layer, "Mul", {x, number(layer, "factor", options.alpha)}, {to});
      x = to;
    }
    if (shifted) node(layer, "Add", {x, number(layer, "term", options.beta)});
  }

  void raise_combine(const Layer& layer) {
    static constexpr const char* kWords[] = {"Add", "Sub", "Mul", "Div"};
    node(layer, kWords[static_cast<std::size_t>(layer.as<CombineOptions>().function)],
         {with_rank(layer, 0, layer.outputs[0]), with_rank(layer, 1, layer.outputs[0])});
  }

  void raise_scale(const Layer& layer) {
    const auto& options = layer.as<ScaleOptions>();
    std::vector<std::int64_t> extents;
    for (std::size_t axis = 1; axis < shape(layer).rank(); ++axis) {
      const bool varies =
          std::find(options.axes.begin(), options.axes.end(), static_cast<std::int64_t>(axis)) != options.axes.end();
      extents.push_back(varies ? shape(layer).extent(axis) : 1);
    }
    std::string x = input(layer);
    const auto apply = [&](const char* op, ParameterRole role, const std::string& to) {
      // The array may be seen in other extents than those that spread it over the value.
      std::string by = array(layer, role, extents);
      if (result_.graph.constants.at(by).shape != extents) {
        const std::string seen = fmt::format("{}:{}", to, op);
        node(layer, "Reshape", {by, whole_numbers(layer, (std::string(op) + ".shape").c_str(), extents)}, {seen});
        by = seen;
      }
      node(layer, op, {x, by}, {to});
      x = to;
    };
    if (options.weight) apply("Mul", ParameterRole::scale, options.bias ? layer.name + ":scaled" : layer.name);
    if (options.bias) apply("Add", ParameterRole::shift, layer.name);
  }

  void raise_mean(const Layer& layer) {
    const auto& options = layer.as<MeanOptions>();
    const bool whole = !options.keep && options.axes.size() + 1 == shape(layer).rank();
    const std::string to = whole ? layer.name + ":mean" : layer.name;
    node(layer, "ReduceMean", {input(layer), whole_numbers(layer, "axes", options.axes)}, {to}).attributes["keepdims"] =
        std::int64_t{options.keep || whole ? 1 : 0};
    if (whole) reshaped(layer, to, {1}, layer.name);
  }

  void raise_adaptive(const Layer& layer) {
    const auto& options = layer.as<AdaptivePoolOptions>();
    const Shape& x = shape(layer);
    if (x.height() % options.height != 0 || x.width() % options.width != 0)
      refuse(layer, fmt::format("averaging {}x{} to {}x{}", x.height(), x.width(), options.height, options.width));
    Window window;
    window.kernel_height = window.stride_height = x.height() / options.height;
    window.kernel_width = window.stride_width = x.width() / options.width;
    give_window(node(layer, "AveragePool", {input(layer)}), window, true);
  }

  void raise_resize(const Layer& layer) {
    const auto& options = layer.as<ResizeOptions>();
    const Shape& x = shape(layer);
    const auto scale = [](double given, std::int64_t in, std::int64_t out) {
      return static_cast<float>(given > 0 ? given : static_cast<double>(out) / static_cast<double>(in));
    };
    // By scales where they say more than the extents.
    const bool scaled = options.scale_height > 0 || options.scale_width > 0;
    Names inputs{input(layer), "", ""};
    if (scaled)
      inputs[2] = constant(layer, "scales",
                           tensor_of<float>(ForeignType::f32, {2},
                                            {scale(options.scale_height, x.height(), options.height),
                                             scale(options.scale_width, x.width(), options.width)}));
    else
      inputs.push_back(whole_numbers(layer, "sizes", {options.height, options.width}));
    ForeignNode& made = node(layer, "Resize", std::move(inputs));
    const bool nearest = options.mode == ResizeMode::nearest;
    static constexpr const char* kCoordinates[] = {"half_pixel", "align_corners", "asymmetric"};
    made.attributes = {
        {"axes", std::vector<std::int64_t>{2, 3}},
        {"mode", std::string(nearest ? "nearest" : "linear")},
        {"coordinate_transformation_mode", std::string(kCoordinates[static_cast<std::size_t>(options.coordinates)])}};
    if (nearest)
      made.attributes["nearest_mode"] =
          std::string(options.coordinates == ResizeCoordinates::half_pixel ? "round_prefer_ceil" : "floor");
  }

  void raise_pad(const Layer& layer) {
    const auto& options = layer.as<PadOptions>();
    std::vector<std::int64_t> pads{0};
    pads.insert(pads.end(), options.before.begin(), options.before.end());
    pads.push_back(0);
    pads.insert(pads.end(), options.after.begin(), options.after.end());
    static constexpr const char* kModes[] = {"constant", "reflect", "edge"};
    Names inputs{input(layer), whole_numbers(layer, "pads", std::move(pads))};
    if (options.mode == PadMode::constant) inputs.push_back(number(layer, "value", options.value));
    node(layer, "Pad", std::move(inputs)).attributes["mode"] =
        std::string(kModes[static_cast<std::size_t>(options.mode)]);
  }

  void raise_shuffle(const Layer& layer) {
    const Shape& x = shape(layer);
    const std::int64_t groups = layer.as<ShuffleOptions>().groups;
    std::vector<std::int64_t> parted{groups, x.channels() / groups}, order{0, 2, 1};
    for (std::size_t axis = 2; axis < x.rank(); ++axis) {
      parted.push_back(x.extent(axis));
      order.push_back(static_cast<std::int64_t>(axis) + 1);
    }
    reshaped(layer, input(layer), std::move(parted), layer.name + ":parted");
    node(layer, "Transpose", {layer.name + ":parted"}, {layer.name + ":turned"}).attributes["perm"] = std::move(order);
    reshaped(layer, layer.name + ":turned", sample_of(x), layer.name);
  }

  void raise_l2(const Layer& layer) {
    const auto& options = layer.as<L2NormalizeOptions>();
    ForeignNode& norm =
        node(layer, "ReduceL2", {input(layer), whole_numbers(layer, "axis", {options.axis})}, {layer.name + ":norm"});
    norm.attributes["keepdims"] = std::int64_t{1};
    node(layer, "Max", {layer.name + ":norm", number(layer, "least", options.epsilon)}, {layer.name + ":length"});
    node(layer, "Div", {input(layer), layer.name + ":length"});
  }

  const Network& network_;
  const std::map<std::string, std::vector<float>>& values_;
  std::map<std::string, const WeightName*> names_;
  std::map<Value, std::string> renamed_;
  std::vector<Value> answers_;
  int drop_paths_ = 0, frozen_norms_ = 0;
  RaisedGraph result_;
};

}  // namespace

RaisedGraph raise_graph(const NetworkPtr& network, const std::vector<WeightName>& names,
                        const std::map<std::string, std::vector<float>>& values) {
  return Raiser(network, names, values).run();
}

}  // namespace tide
