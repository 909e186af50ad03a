// A graph as Python writes it down, dictionaries and lists in the form of foreign/graph.h, as the graph that it is.
#pragma once

#include "bindings.h"

namespace tide::python {

// Throws an Error that says which part is not as it should be. Arrays are not copied.
[[nodiscard]] ForeignGraph graph_of(const nb::dict& graph);

}  // namespace tide::python
