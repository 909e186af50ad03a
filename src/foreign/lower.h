// From a foreign graph to layers: constants are folded, shapes resolved, patterns recognized (dropout,
// drop path, activations and batch norms in pieces), and what is left becomes layer specifications.
#pragma once

#include <string>
#include <vector>

#include "foreign/graph.h"
#include "network/network.h"

namespace tide {

// A parameter or statistic of the network, and the constant that it comes from and goes back to. Its
// elements in row-major order are those of the constant, whose shape may differ ([O, I, 1, 1] and [O, I]);
// `transposed`: the constant is a matrix, and its rows are the parameter's columns.
struct ForeignWeight {
  std::string parameter;  // its name in the network
  std::string constant;
  bool transposed = false;
};

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
  NetworkPtr network;
  std::vector<ForeignWeight> weights;
  std::vector<ForeignTarget> targets;
  std::vector<std::string> notes;  // for people: what was folded away, what is not as it was; one line each
};

// Throws an Error that names the operator, its node and place, and says what to do instead.
[[nodiscard]] ImportedNetwork import_graph(const ForeignGraph& graph, const ImportOptions& options = {});

// The values of a weight as floats, in the order of the network's parameter; and back into the constant's order.
[[nodiscard]] std::vector<float> weight_values(const ForeignGraph& graph, const ForeignWeight& weight);

}  // namespace tide
