// From operations to a network: those that its results need, with names, and with parameters that know their arrays.
#include <algorithm>
#include <functional>
#include <set>

#include "foreign/lowering.h"
#include "network/builder.h"
#include "network/kind.h"

namespace tide {
namespace {

std::vector<bool> needed_operations(const Operations& operations, const std::vector<Made>& outputs) {
  std::vector<bool> needed(operations.size(), false);
  std::vector<std::size_t> open;
  const auto need = [&](const Made& value) {
    if (needed[value.operation]) return;
    needed[value.operation] = true;
    open.push_back(value.operation);
  };
  for (const Made& output : outputs) need(output);
  while (!open.empty()) {
    const std::size_t next = open.back();
    open.pop_back();
    for (const Made& input : operations.all()[next].inputs) need(input);
  }
  return needed;
}

[[noreturn]] void refuse_piece(const Operation& operation) {
  const std::string where = operation.node != nullptr ? describe(*operation.node) : "a node";
  switch (operation.piece) {
    case Piece::erf: throw Error("{}: there is a layer for it as a part of GELU only", where);
    case Piece::cube:
      throw Error("{}: there is a layer for it as a part of GELU only; powers can be 1, 2 and 1/2", where);
    case Piece::norm:
      throw Error("{}: there is a layer for a norm only where it divides what it is the norm of", where);
    case Piece::spread:
      throw Error("{}: values can only be spread where they are added or multiplied to others; use Resize", where);
    case Piece::log_softmax:
      throw Error("{}: there is no layer for it; end in the values before it, the loss has a softmax of its own",
                  where);
    case Piece::above: throw Error("{}: there is a layer for a comparison only as a part of softplus", where);
    case Piece::none: break;
  }
  throw Error("{}: there is no layer for it", where);
}

class Emitter {
 public:
  Emitter(Lowering& lowering, const std::vector<Made>& outputs)
      : lowering_(lowering),
        operations_(lowering.operations),
        needed_(needed_operations(lowering.operations, outputs)),
        builder_(clean(lowering.graph.name.empty() ? "model" : lowering.graph.name)),
        frozen_(lowering.graph.frozen.begin(), lowering.graph.frozen.end()) {
    read_.resize(operations_.size());
    for (std::size_t i = 0; i < operations_.size(); ++i)
      if (needed_[i])
        for (const Made& input : operations_.all()[i].inputs) read_[input.operation].insert(input.output);
    for (const Made& output : outputs) read_[output.operation].insert(output.output);
    for (std::size_t i = 0; i < operations_.size(); ++i)
      if (needed_[i]) count_arrays(operations_.all()[i]);
    name_after_weights();
  }

  ImportedNetwork run() {
    made_.resize(operations_.size());
    for (std::size_t i = 0; i < operations_.size(); ++i)
      if (needed_[i]) emit_operation(i);
    note_copies();
    result_.network = std::make_shared<const Network>(std::move(builder_).build());
    return std::move(result_);
  }

 private:
  static std::string clean(std::string name) {
    for (char& c : name)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '_';
    return name;
  }

  // What layers share that share all: the same arrays, seen alike, in the same roles. Empty without arrays.
  static std::string sharing_key(const Operation& operation) {
    std::string key;
    for (const ParameterArray& parameter : operation.parameters)
      if (!is_statistic(parameter.role) && !parameter.array.name.empty())
        key += fmt::format("{}:{}:{}:{}|", parameter_role_name(parameter.role), parameter.array.name,
                           fmt::join(parameter.array.seen_as, ","), fmt::join(parameter.array.axes, ","));
    return key.empty() ? key : key + std::string(kind_name(operation.kind));
  }

  void count_arrays(const Operation& operation) {
    const std::string key = sharing_key(operation);
    ++users_of_key_[key];
    for (const ParameterArray& parameter : operation.parameters)
      if (!parameter.array.name.empty()) keys_of_array_[parameter.array.name].insert(key);
  }

  // Whether it may be one array because its values were equal when the file was written.
  bool is_merged(const Operation& operation, const Array& array) const {
    if (!lowering_.graph.merged) return false;
    if (keys_of_array_.at(array.name).size() > 1) return true;
    const std::string key = sharing_key(operation);
    return !key.empty() && users_of_key_.at(key) > 1 && are_equal(operation);
  }

  // Whether each of its arrays is one number many times: fresh from a constructor, and equal to others that are, too.
  bool are_equal(const Operation& operation) const {
    for (const ParameterArray& parameter : operation.parameters)
      if (!is_statistic(parameter.role) && !parameter.array.name.empty() && !is_one_number(parameter.array))
        return false;
    return true;
  }

  bool is_one_number(const Array& array) const {
    const auto known = one_number_.find(array.name);
    if (known != one_number_.end()) return known->second;
    const std::vector<double> values = doubles_of(array);
    return one_number_[array.name] =
               std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
  }

  // The module whose arrays these are, where all of them are called as PyTorch calls those of one, or "". Where they
  // lie the other way round it is none.
  std::string module_of(const Operation& operation) const {
    std::string module;
    for (const ParameterArray& parameter : operation.parameters) {
      const Array& array = parameter.array;
      if (array.name.empty() || is_merged(operation, array)) continue;
      const std::string start = module_of(array.name, parameter.role);
      if (start.empty() || !array.axes.empty() || (!module.empty() && module != start)) return "";
      module = start;
    }
    return module;
  }

  static std::string module_of(const std::string& array, ParameterRole role) {
    // The bias that a batch norm leaves where it is folded away is called after the weight.
    for (const std::string_view before : {".", ".weight_"}) {
      const std::string ending = fmt::format("{}{}", before, pytorch_suffix(role));
      if (array.ends_with(ending)) return array.substr(0, array.size() - ending.size());
    }
    return "";
  }

  // Before all others take their names.
  void name_after_weights() {
    module_names_.resize(operations_.size());
    for (std::size_t i = 0; i < operations_.size(); ++i)
      if (needed_[i] && operations_.all()[i].kind == LayerKind::input) names_.insert(operations_.all()[i].target);
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (!needed_[i]) continue;
      const std::string module = clean(module_of(operations_.all()[i]));
      if (!module.empty() && names_.insert(module).second) module_names_[i] = module;
    }
  }

  std::string name_of(std::size_t index) {
    const Operation& operation = operations_.all()[index];
    if (operation.kind == LayerKind::input) return operation.target;  // the graph's input
    return module_names_[index].empty() ? unique_name(operation) : module_names_[index];
  }

  std::string unique_name(const Operation& operation) {
    return unique_name(operation.node != nullptr ? clean(operation.node->name) : "loss", operation.kind);
  }

  std::string unique_name(std::string name, LayerKind kind) {
    if (name.empty()) name = kind_name(kind);
    const std::string first = name;
    for (int n = 2; !names_.insert(name).second; ++n) name = fmt::format("{}_{}", first, n);
    return name;
  }

  void emit_operation(std::size_t index) {
    const Operation& operation = operations_.all()[index];
    if (operation.piece != Piece::none) refuse_piece(operation);
    if (operation.outputs.size() > read_[index].size()) return emit_parts(index);
    const std::string name = name_of(index);
    const auto [bias_apart, frozen] = frozen_of(operation);
    LayerOptions options = operation.options;
    if (bias_apart) without_bias(options);
    const std::string shared = shared_layer(operation, name);
    if (!shared.empty()) builder_.sharing({layers_.at(shared)});
    builder_.freeze(frozen);
    const LayerId id = builder_.layer(operation.kind, inputs_of(operation), options, name);
    layers_[name] = id;
    made_[index] = values_of_layer(id, operation.outputs.size());
    if (bias_apart) {
      builder_.freeze(!frozen);
      const std::string bias = unique_name(name, operation.kind);
      const LayerId behind =
          builder_.layer(LayerKind::scale, {Value{id}}, ScaleOptions{.axes = {1}, .weight = false, .bias = true}, bias);
      made_[index] = {Value{behind}};
      bind(behind, ParameterRole::shift, operation.parameters.back().array);
    }
    for (const ParameterArray& parameter : operation.parameters)
      if ((shared.empty() || is_statistic(parameter.role)) && !(bias_apart && parameter.role == ParameterRole::bias))
        bind(id, parameter.role, parameter.array);
    if (is_loss(builder_.so_far().layer(id)) && !operation.target.empty())
      result_.targets.push_back({name, operation.target});
  }

  std::vector<Value> inputs_of(const Operation& operation) const {
    std::vector<Value> inputs;
    for (const Made& input : operation.inputs) inputs.push_back(made_[input.operation][input.output]);
    return inputs;
  }

  static std::vector<Value> values_of_layer(LayerId id, std::size_t outputs) {
    std::vector<Value> values(outputs, Value{id});
    for (std::size_t i = 0; i < outputs; ++i) values[i].output = static_cast<std::int32_t>(i);
    return values;
  }

  // A split some of whose outputs nobody reads: each of the others by itself.
  void emit_parts(std::size_t index) {
    const Operation& operation = operations_.all()[index];
    builder_.freeze(false);
    const Shape& shape = operations_.shape(operation.inputs.at(0));
    const auto& channels = std::get<SplitOptions>(operation.options).channels;
    made_[index].resize(channels.size());
    std::int64_t first = 0;
    for (std::size_t i = 0; i < channels.size(); ++i) {
      if (read_[index].contains(i)) {
        PadOptions pad;
        pad.before.assign(shape.rank() - 1, 0);
        pad.after.assign(shape.rank() - 1, 0);
        pad.before[0] = -first;
        pad.after[0] = first + channels[i] - shape.channels();
        made_[index][i] = {builder_.layer(LayerKind::pad, inputs_of(operation), pad, unique_name(operation))};
      }
      first += channels[i];
    }
  }

  static bool is_product(LayerKind kind) {
    return kind == LayerKind::convolution || kind == LayerKind::transposed_convolution ||
           kind == LayerKind::fully_connected;
  }

  static void without_bias(LayerOptions& options) {
    if (auto* const convolution = std::get_if<ConvolutionOptions>(&options)) convolution->bias = false;
    if (auto* const product = std::get_if<FullyConnectedOptions>(&options)) product->bias = false;
  }

  struct Frozen {
    bool bias_apart, frozen;
  };

  // Arrays without a name are weights where they are multiplied, and constants elsewhere.
  Frozen frozen_of(const Operation& operation) const {
    bool all = true, any = false, named = false;
    std::vector<bool> each;
    for (const ParameterArray& parameter : operation.parameters) {
      if (is_statistic(parameter.role)) continue;
      const bool has_name = !parameter.array.name.empty();
      const bool frozen = has_name ? frozen_.contains(parameter.array.name) : !is_product(operation.kind);
      named = named || has_name;
      all = all && frozen;
      any = any || (frozen && has_name);
      each.push_back(frozen);
    }
    if (each.empty()) return {false, false};
    if (!any || all) return {false, all};
    if (is_product(operation.kind) && each.size() == 2 && operation.parameters.back().role == ParameterRole::bias)
      return {true, each[0]};
    throw Error(
        "{}: a part of its parameters is frozen, and a part is not, for which there is no layer; freeze all of them",
        operation.node != nullptr ? describe(*operation.node) : "a layer");
  }

  // The layer whose parameters it uses, or "". Notes who it is otherwise.
  std::string shared_layer(const Operation& operation, const std::string& name) {
    const std::string key = sharing_key(operation);
    if (key.empty()) return "";
    const auto found = users_.find(key);
    const bool merged = lowering_.graph.merged;
    if (found != users_.end() && !(merged && are_equal(operation))) {
      lowering_.note(fmt::format("'{}' and '{}' use the same '{}', which is trained once", found->second, name,
                                 first_array(operation)));
      return found->second;
    }
    for (const ParameterArray& parameter : operation.parameters) {
      const std::string& array = parameter.array.name;
      if (is_statistic(parameter.role) || array.empty()) continue;
      if (const auto [user, is_new] = array_users_.emplace(array, name); !is_new && !merged)
        throw Error(
            "{}: '{}' uses its array '{}', too, but not in the same way; layers share all of their parameters or none",
            operation.node != nullptr ? describe(*operation.node) : name, user->second, array);
    }
    users_.emplace(key, name);
    return "";
  }

  static std::string first_array(const Operation& operation) {
    for (const ParameterArray& parameter : operation.parameters)
      if (!is_statistic(parameter.role) && !parameter.array.name.empty()) return parameter.array.name;
    return "";
  }

  void note_copies() {
    if (copies_.empty()) return;
    const std::string others = copies_.size() > 1 ? fmt::format(" and {} more", copies_.size() - 1) : "";
    lowering_.note(
        fmt::format("the file has one array for several layers ('{}'{}), as exporters write arrays that are equal; "
                    "each layer has its own here",
                    *copies_.begin(), others));
  }

  void bind(LayerId id, ParameterRole role, const Array& array) {
    const Layer& layer = builder_.so_far().layer(id);
    const Parameter& parameter = builder_.so_far().parameters[layer.parameter(role).index()];
    if (parameter.shape.elements() != element_count(array.extents))
      throw Error("layer '{}': its {} has {} elements but '{}' has {}", layer.name, parameter_role_name(role),
                  parameter.shape.elements(), array.name, element_count(array.extents));
    const bool is_copy = !array.name.empty() && lowering_.graph.merged && !bound_.insert(array.name).second;
    if (!array.name.empty() && !is_copy) {
      result_.weights.push_back({parameter.name, array.name, array.seen_as, array.axes});
      return;
    }
    std::string name = parameter.name;
    while (lowering_.graph.constants.contains(name) || result_.made.contains(name)) name += "_";
    if (is_copy) {
      lowering_.count(layer.name, element_count(array.extents));
      copies_.insert(array.name);
      result_.made[name] = lowering_.graph.constants.at(array.name);
      result_.weights.push_back({parameter.name, name, array.seen_as, array.axes});
      return;
    }
    const Array plain = array.axes.empty() ? array : made_array(doubles_of(array), array.extents);
    result_.made[name] = plain.tensor;
    result_.weights.push_back({parameter.name, name, {}, {}});
  }

  Lowering& lowering_;
  const Operations& operations_;
  std::vector<bool> needed_;
  std::vector<std::set<std::size_t>> read_;  // outputs, by operation
  Builder builder_;
  std::set<std::string> frozen_, names_;
  std::vector<std::vector<Value>> made_;  // by operation
  std::map<std::string, LayerId> layers_;
  std::vector<std::string> module_names_;  // by operation; empty where it keeps its own
  std::map<std::string, int> users_of_key_;
  std::map<std::string, std::set<std::string>> keys_of_array_;
  std::map<std::string, std::string> users_, array_users_;
  std::set<std::string> bound_, copies_;  // arrays
  mutable std::map<std::string, bool> one_number_;
  ImportedNetwork result_;
};

}  // namespace

ImportedNetwork emit(Lowering& lowering, const std::vector<Made>& outputs) { return Emitter(lowering, outputs).run(); }

}  // namespace tide
