#include <algorithm>

#include "step/build.h"

namespace tide {

std::vector<LayerId> execution_order(const Network& network) {
  const std::size_t count = network.layers.size();
  // Consumers of each layer, once per edge, in the order in which they were declared.
  std::vector<std::vector<LayerId>> next(count);
  for (std::size_t i = 0; i < count; ++i)
    for (const Value& input : network.layers[i].inputs) next[input.layer.index()].push_back(LayerId(i));

  std::vector<LayerId> order;
  order.reserve(count);
  std::vector<std::size_t> arrived(count, 0);
  std::vector<LayerId> stack;
  for (std::size_t source = 0; source < count; ++source) {
    if (!network.layers[source].inputs.empty()) continue;
    stack.push_back(LayerId(source));
    while (!stack.empty()) {
      const LayerId layer = stack.back();
      stack.pop_back();
      // The counter of Algorithm 1: a join waits until it was reached along every edge.
      const std::size_t needed = std::max<std::size_t>(network.layer(layer).inputs.size(), 1);
      if (++arrived[layer.index()] < needed) continue;
      order.push_back(layer);
      const auto& consumers = next[layer.index()];
      stack.insert(stack.end(), consumers.rbegin(), consumers.rend());
    }
  }
  return order;
}

}  // namespace tide
