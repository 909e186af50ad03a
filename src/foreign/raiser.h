// One network on its way to a graph (raise.h).
#pragma once

#include "foreign/raise.h"

namespace tide {

class Raiser {
 public:
  // REQUIRES: all of them live as long.
  Raiser(const Network& network, const std::vector<WeightName>& names,
         const std::map<std::string, std::vector<float>>& values);
  RaisedGraph run();

 private:
  using Names = std::vector<std::string>;

  [[noreturn]] static void refuse(const Layer& layer, std::string_view why);

  // Names, nodes and constants of the graph (raise/values.cpp).
  // Values have the names of their layers.
  [[nodiscard]] std::string name_of(Value value) const;
  [[nodiscard]] std::string input(const Layer& layer, std::size_t i = 0) const { return name_of(layer.inputs.at(i)); }
  [[nodiscard]] const Shape& shape(const Layer& layer, std::size_t i = 0) const {
    return network_.shape(layer.inputs.at(i));
  }
  ForeignNode& node(const Layer& layer, std::string op, Names inputs, Names outputs);
  ForeignNode& node(const Layer& layer, std::string op, Names inputs);
  std::string constant(const Layer& layer, const char* what, ForeignTensor tensor);
  std::string whole_numbers(const Layer& layer, const char* what, std::vector<std::int64_t> numbers);
  std::string number(const Layer& layer, const char* what, double value);
  // The batch stays open.
  std::string reshaped(const Layer& layer, const std::string& from, std::vector<std::int64_t> sample,
                       const std::string& to);
  // An array under the name that users know. Where `extents` are given it is seen so, under a name of its own if need
  // be.
  std::string array(const Layer& layer, ParameterRole role, const std::vector<std::int64_t>& extents = {});
  // Whether it lies the other way round in the user's file: {in, out}.
  [[nodiscard]] bool is_turned(const Layer& layer) const;
  static std::vector<std::int64_t> sample_of(const Shape& shape);
  // Vectors are images of one pixel.
  std::string as_image(const Layer& layer);
  // Layers join vectors and images of one pixel; ONNX spreads them over each other.
  std::string with_rank(const Layer& layer, std::size_t i, const Shape& joined);

  // One layer, by its kind; then the families (raise/).
  void raise(LayerId id);
  void raise_plain(const Layer& layer, const char* op) { node(layer, op, {input(layer)}); }
  void raise_input(const Layer& layer);
  // Losses have no layer behind them; without one it is what nobody reads.
  void give_outputs();
  static void give_window(ForeignNode& to, const Window& w, bool with_kernel);
  void raise_convolution(const Layer& layer, const char* op);
  void raise_product(const Layer& layer);
  void raise_global_average(const Layer& layer);
  void raise_pool(const Layer& layer);
  void raise_lrn(const Layer& layer);
  void raise_batch_norm(const Layer& layer);
  void raise_group_norm(const Layer& layer);
  void raise_mean(const Layer& layer);
  void raise_adaptive(const Layer& layer);
  void raise_chain(const Layer& layer, const char* op);
  void raise_activation(const Layer& layer);
  void raise_softplus(const Layer& layer, const ActivationOptions& options);
  void raise_affine(const Layer& layer, const ActivationOptions& options);
  void raise_combine(const Layer& layer);
  void raise_scale(const Layer& layer);
  void raise_l2(const Layer& layer);
  // A vector of memory order, channels last.
  void raise_flatten(const Layer& layer);
  void raise_split(LayerId id, const Layer& layer);
  void raise_resize(const Layer& layer);
  void raise_pad(const Layer& layer);
  void raise_shuffle(const Layer& layer);

  const Network& network_;
  const std::map<std::string, std::vector<float>>& values_;
  std::map<std::string, const WeightName*> names_;
  std::map<Value, std::string> renamed_;
  std::vector<Value> answers_;
  int drop_paths_ = 0, frozen_norms_ = 0;
  RaisedGraph result_;
};

// Values that the tensor owns.
template <typename Number>
ForeignTensor tensor_of(ForeignType type, std::vector<std::int64_t> shape, std::vector<Number> values) {
  const auto owner = std::make_shared<const std::vector<Number>>(std::move(values));
  return {type, std::move(shape), std::as_bytes(std::span(*owner)), owner};
}

}  // namespace tide
