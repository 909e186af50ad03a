// From layers back to a graph that other frameworks read: the words of ONNX, operator set 21.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "foreign/graph.h"
#include "network/network.h"
#include "network/weight_name.h"

namespace tide {

struct RaisedGraph {
  ForeignGraph graph;
  std::vector<std::string> notes;  // for people: what is left out; one line each
};

// What the network answers: losses are left out, and each has its input as an output of the graph. `values`, by
// parameter, go along under the names of `names`, or the network's own where those are empty. Throws an Error that
// names a layer for which ONNX has no word, or a parameter without values.
[[nodiscard]] RaisedGraph raise_graph(const NetworkPtr& network, const std::vector<WeightName>& names,
                                      const std::map<std::string, std::vector<float>>& values);

}  // namespace tide
