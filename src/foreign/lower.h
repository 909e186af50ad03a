// From a foreign graph to layers: constants are folded, shapes resolved, patterns recognized (dropout,
// drop path, activations and batch norms in pieces), and what is left becomes layer specifications.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foreign/graph.h"
#include "network/network.h"
#include "network/weight_name.h"

namespace tide {

// Which input a loss takes its targets from.
struct ForeignTarget {
  std::string loss;   // the layer
  std::string input;  // of the graph
};

struct ImportOptions {
  // A loss to put behind the graph's output where the graph has none: "cross-entropy", "binary-cross-entropy",
  // "mean-squared-error"; or "" for a network without one.
  std::string loss = "cross-entropy";
  // Extents of one sample, where the graph leaves them open: "3x224x224".
  std::string input;
};

struct ImportedNetwork {
  // Its layers are called as the modules of their arrays, "features.0.0" for "features.0.0.weight", or else as their
  // nodes.
  NetworkPtr network;
  std::vector<WeightName> weights;  // arrays are the graph's constants
  std::vector<ForeignTarget> targets;
  std::vector<std::string> notes;  // for people: what was folded away, what is not as it was; one line each
  // Arrays of `weights` that are no constants of the graph: they were computed from those, or stood in nodes.
  std::map<std::string, ForeignTensor> made;
};

// Throws an Error that names the operator, its node and place, and says what to do instead.
[[nodiscard]] ImportedNetwork import_graph(const ForeignGraph& graph, const ImportOptions& options = {});

// Any type as floats, in row-major order.
[[nodiscard]] std::vector<float> values_of(const ForeignTensor& tensor);
[[nodiscard]] std::vector<double> doubles_of(const ForeignTensor& tensor);

}  // namespace tide
