// A network from layers that name their inputs, in any order.
#include <charconv>
#include <functional>
#include <queue>
#include <unordered_map>

#include "network/builder.h"

namespace tide {
namespace {

// Where an input comes from: a position in the list of specs, and the output.
struct Source {
  std::size_t spec = 0;
  std::int32_t output = 0;
};

using Positions = std::unordered_map<std::string_view, std::size_t>;

Positions index_names(const std::vector<LayerSpec>& specs) {
  Positions positions;
  positions.reserve(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].name.empty()) throw Error("layer {} has no name; give it one", i + 1);
    if (!positions.emplace(specs[i].name, i).second)
      throw Error("two layers are called '{}'; rename one of them", specs[i].name);
  }
  return positions;
}

// "name", or "name:output".
Source find_source(const LayerSpec& spec, std::string_view text, const Positions& positions) {
  const auto whole = positions.find(text);
  const std::size_t colon = text.rfind(':');
  const auto part = colon == std::string_view::npos ? positions.end() : positions.find(text.substr(0, colon));
  if (whole != positions.end() && part != positions.end())
    throw Error("layer '{}': its input '{}' is a layer and may be an output of '{}' too; rename one of them", spec.name,
                text, text.substr(0, colon));
  if (whole != positions.end()) return {whole->second, 0};
  if (part == positions.end())
    throw Error("layer '{}': its input '{}' does not exist; check the name", spec.name, text);
  std::int32_t output = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + colon + 1, last, output);
  if (error != std::errc() || end != last || output < 0)
    throw Error("layer '{}': its input '{}' does not end in the number of an output", spec.name, text);
  return {part->second, output};
}

struct Graph {
  std::vector<std::vector<Source>> inputs;            // by spec
  std::vector<std::vector<std::size_t>> comes_after;  // inputs, and the layer it shares with
};

Graph connect(const std::vector<LayerSpec>& specs, const Positions& positions) {
  Graph graph;
  graph.inputs.resize(specs.size());
  graph.comes_after.resize(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (const std::string& text : specs[i].inputs) {
      const Source source = find_source(specs[i], text, positions);
      if (source.spec == i) throw Error("layer '{}' takes its own output as an input; connect another", specs[i].name);
      graph.inputs[i].push_back(source);
      graph.comes_after[i].push_back(source.spec);
    }
    if (specs[i].share.empty()) continue;
    const auto found = positions.find(specs[i].share);
    if (found == positions.end() || found->second == i)
      throw Error("layer '{}' shares the parameters of '{}', which is no other layer; check the name", specs[i].name,
                  specs[i].share);
    graph.comes_after[i].push_back(found->second);
  }
  return graph;
}

// Walks backwards among the layers that could not be sorted; every one of them has such a
// predecessor, so the walk must meet itself.
[[noreturn]] void report_cycle(const std::vector<LayerSpec>& specs, const Graph& graph,
                               const std::vector<std::size_t>& missing) {
  std::size_t at = 0;
  while (missing[at] == 0) ++at;
  std::vector<bool> seen(specs.size(), false);
  while (!seen[at]) {
    seen[at] = true;
    for (const std::size_t before : graph.comes_after[at]) {
      if (missing[before] == 0) continue;
      at = before;
      break;
    }
  }
  throw Error("layer '{}' is on a cycle: it needs its own output; remove one of the connections (or `share`) on it",
              specs[at].name);
}

// Kahn's algorithm. Of the layers that are ready, the first in the list is next, so that a
// list which is already sorted keeps its order.
std::vector<std::size_t> sort(const std::vector<LayerSpec>& specs, const Graph& graph) {
  std::vector<std::size_t> missing(specs.size());
  std::vector<std::vector<std::size_t>> followers(specs.size());
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    missing[i] = graph.comes_after[i].size();
    if (missing[i] == 0) ready.push(i);
    for (const std::size_t before : graph.comes_after[i]) followers[before].push_back(i);
  }
  std::vector<std::size_t> order;
  order.reserve(specs.size());
  while (!ready.empty()) {
    const std::size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const std::size_t follower : followers[next])
      if (--missing[follower] == 0) ready.push(follower);
  }
  if (order.size() != specs.size()) report_cycle(specs, graph, missing);
  return order;
}

}  // namespace

Network assemble(std::string name, std::vector<LayerSpec> specs) {
  const Positions positions = index_names(specs);
  const Graph graph = connect(specs, positions);
  const std::vector<std::size_t> order = sort(specs, graph);

  Builder builder(std::move(name));
  std::vector<LayerId> made(specs.size());
  for (const std::size_t i : order) {
    const LayerSpec& spec = specs[i];
    std::vector<Value> inputs;
    inputs.reserve(graph.inputs[i].size());
    for (std::size_t k = 0; k < graph.inputs[i].size(); ++k) {
      const Source& source = graph.inputs[i][k];
      const Value value{made[source.spec], source.output};
      const std::size_t outputs = builder.so_far().layer(value.layer).outputs.size();
      if (static_cast<std::size_t>(value.output) >= outputs)
        throw Error("layer '{}': its input '{}' asks for output {}, but '{}' has {}, counted from 0", spec.name,
                    spec.inputs[k], value.output, specs[source.spec].name, outputs);
      inputs.push_back(value);
    }
    if (!spec.share.empty()) builder.sharing({made[positions.find(spec.share)->second]});
    builder.freeze(spec.frozen);
    made[i] = builder.layer(spec.kind, std::move(inputs), spec.options, spec.name);
    builder.mirror({made[i]}, spec.mirror);
  }
  return std::move(builder).build();
}

}  // namespace tide
