// A network as Python has it: with the names and shapes that its user knows its arrays by, and the values that it
// begins with.
#pragma once

#include <unordered_map>

#include "arrays.h"

namespace tide::python {

struct NamedArray {
  ParameterId id;
  WeightName name;
  std::vector<std::int64_t> shape;  // the user's
};

class NamedNetwork {
 public:
  // From the zoo or a file, with what that brings along; weights by a safetensors file, or none.
  [[nodiscard]] static NamedNetwork load(const ModelRequest& request, const std::string& weights = "");
  [[nodiscard]] static NamedNetwork import(const ForeignGraph& graph, const ImportOptions& options);
  explicit NamedNetwork(NetworkPtr network);

  [[nodiscard]] const NetworkPtr& network() const { return network_; }
  [[nodiscard]] const std::vector<NamedArray>& arrays() const { return arrays_; }
  // As somebody else calls them; empty: they have the network's own names.
  [[nodiscard]] const std::vector<WeightName>& names() const { return names_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] const std::vector<ForeignTarget>& targets() const { return targets_; }
  // Throws an Error that suggests where to look.
  [[nodiscard]] const NamedArray& array(const std::string& name) const;

  // What it begins with, in logical order; nothing where that is random.
  [[nodiscard]] std::optional<std::vector<float>> start_value(const NamedArray& array) const;
  // The same in double precision: of a seed where it is random.
  [[nodiscard]] std::vector<double> exact_start_value(const NamedArray& array, std::uint64_t seed) const;

  // The same with layers that differ in how they are trained.
  [[nodiscard]] NamedNetwork with(NetworkPtr network) const;
  [[nodiscard]] NamedNetwork with_weights(const std::string& file) const;

 private:
  NamedNetwork() = default;
  void name_arrays(const std::vector<WeightName>& names);

  NetworkPtr network_;
  std::string model_;  // that it was made from; empty: none
  std::vector<WeightName> names_;
  std::vector<NamedArray> arrays_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<ForeignTarget> targets_;
  std::vector<std::string> notes_;
  std::map<std::string, std::vector<float>> values_;  // by parameter
  std::map<std::string, ForeignTensor> tensors_;      // by array
};

}  // namespace tide::python
