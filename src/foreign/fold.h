// Nodes all of whose inputs are known.
#pragma once

#include "foreign/lowering.h"

namespace tide {

// Whether the node could be computed at once: its results are known then. Throws an Error where that would depend on
// the batch in a way that cannot be followed, or make a constant larger than all that the graph has.
[[nodiscard]] bool fold(const NodeContext& node);

}  // namespace tide
