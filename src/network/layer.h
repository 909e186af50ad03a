// What a network is made of: layers with their options, connected by values. A value is
// one output of one layer; most layers have one output, split and fork have several.
#pragma once

#include <string>
#include <vector>

#include "base/id.h"
#include "network/kinds.h"
#include "network/role.h"

namespace tide {

// One output of one layer.
struct Value {
  LayerId layer;
  std::int32_t output = 0;
  friend auto operator<=>(const Value&, const Value&) = default;
};

// A parameter of the network, as one of its layers uses it.
struct LayerParameter {
  ParameterRole role = ParameterRole::weight;
  ParameterId id;
  friend bool operator==(const LayerParameter&, const LayerParameter&) = default;
};

struct Layer {
  LayerKind kind = LayerKind::input;
  std::string name;
  std::vector<Value> inputs;
  LayerOptions options;
  std::vector<Shape> outputs;              // sample shapes, batch 1
  std::vector<LayerParameter> parameters;  // that are trained, unless frozen
  std::vector<LayerParameter> statistics;  // that it keeps from step to step
  bool frozen = false;                     // its parameters are not trained
  int mirror = 0;                          // how often its output may be recomputed (sublinear policy)

  template <typename Options>
  [[nodiscard]] const Options& as() const {
    return std::get<Options>(options);
  }
  // Its parameter or statistic of this role; invalid where it has none.
  [[nodiscard]] ParameterId parameter(ParameterRole role) const;
};

// `shape` is the logical order (see Shape); a backend may keep another.
struct Parameter {
  std::string name;
  ParameterRole role = ParameterRole::weight;
  Shape shape;
  std::int64_t fan_in = 1;  // for initialization
  bool frozen = false;      // true if every layer that uses it is frozen; statistics are never trained
  // How it is trained (adapt.h): factors of the learning rate and of the weight decay.
  double rate = 1, decay = 1;
};

}  // namespace tide
