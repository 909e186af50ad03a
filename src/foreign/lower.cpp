#include "foreign/lower.h"

#include <charconv>

#include "foreign/fold.h"
#include "foreign/lowering.h"

namespace tide {
namespace {

using Words = std::map<std::pair<std::string_view, std::string_view>, void (*)(const NodeContext&)>;

const Words& all_words() {
  static const Words kWords = [] {
    Words words;
    for (const auto family :
         {function_words(), arithmetic_words(), product_words(), pool_words(), normalization_words(),
          rearrangement_words(), place_words(), random_words(), number_words(), loss_words()})
      for (const Word& word : family) words.emplace(std::pair(word.domain, word.op), word.lower);
    return words;
  }();
  return kWords;
}

// "3x224x224"
std::vector<std::int64_t> parse_extents(const std::string& text) {
  std::vector<std::int64_t> extents;
  const char* at = text.data();
  const char* const last = at + text.size();
  while (true) {
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(at, last, extent);
    if (error != std::errc() || extent < 1) break;
    extents.push_back(extent);
    if (end == last) return extents;
    if (*end != 'x') break;
    at = end + 1;
  }
  throw Error("input '{}' is no list of extents; write it as 3x224x224", text);
}

bool is_loss_word(const ForeignNode& node) {
  return node.domain == "tidepool" &&
         (node.op == "CrossEntropy" || node.op == "BinaryCrossEntropyWithLogits" || node.op == "MeanSquaredError");
}

// The one that samples come by.
const ForeignInput& samples_input(const ForeignGraph& graph) {
  std::map<std::string, bool> targets;
  for (const ForeignNode& node : graph.nodes)
    if (is_loss_word(node) && node.inputs.size() > 1) targets[node.inputs[1]] = true;
  const ForeignInput* found = nullptr;
  for (const ForeignInput& input : graph.inputs) {
    // Older files list their weights, too.
    if (graph.constants.contains(input.name) || targets.contains(input.name)) continue;
    if (found != nullptr)
      throw Error("the model has several inputs, '{}' and '{}'; there are layers for one: join them before",
                  found->name, input.name);
    found = &input;
  }
  if (found == nullptr) throw Error("the model has no input that samples could come by");
  if (!is_floating(found->type))
    throw Error("the model's input '{}' has type {}; there are layers for floats", found->name,
                foreign_type_name(found->type));
  return *found;
}

Shape sample_of_input(const ForeignInput& input, const ImportOptions& options) {
  std::vector<std::int64_t> behind;
  if (!options.input.empty()) {
    behind = parse_extents(options.input);
    bool fits = behind.size() + 1 == input.shape.size();
    for (std::size_t i = 0; fits && i < behind.size(); ++i)
      fits = input.shape[i + 1] < 0 || input.shape[i + 1] == behind[i];
    if (!fits && !input.shape.empty())
      throw Error("input {} does not fit '{}', which is {}", options.input, input.name, fmt::join(input.shape, "x"));
  } else {
    for (std::size_t i = 1; i < input.shape.size(); ++i) {
      if (input.shape[i] < 1)
        throw Error("input '{}' leaves extent {} open; say what it is, as in --input 3x224x224", input.name, i);
      behind.push_back(input.shape[i]);
    }
  }
  if (behind.empty() || behind.size() + 1 > Shape::kMostRank)
    throw Error("input '{}' has {} extents behind the batch; it takes 1 to {}", input.name, behind.size(),
                Shape::kMostRank - 1);
  behind.insert(behind.begin(), 1);
  return Shape(behind);
}

void add_input(Lowering& lowering) {
  const ForeignInput& input = samples_input(lowering.graph);
  if (!input.shape.empty() && input.shape[0] > 0) lowering.batch = input.shape[0];
  Operation operation;
  operation.kind = LayerKind::input;
  operation.options = InputOptions{sample_of_input(input, lowering.options)};
  operation.target = input.name;
  lowering.values[input.name] = lowering.operations.append(std::move(operation));
}

void lower_node(Lowering& lowering, const ForeignNode& node) {
  const NodeContext context(lowering, node);
  if (fold(context)) return;
  const std::string_view domain = node.domain == "ai.onnx" ? std::string_view() : std::string_view(node.domain);
  const auto word = all_words().find({domain, node.op});
  if (word == all_words().end()) {
    // What was not possible before it is the reason, if there is one.
    for (std::size_t i = 0; i < context.inputs(); ++i) static_cast<void>(context.value(i));
    if (!domain.empty())
      context.refuse("there is no layer for it (domain '{}'); docs/models.md lists those there are", domain);
    context.refuse("there is no layer for it; docs/models.md lists those there are");
  }
  word->second(context);
}

// What there is no layer for is an error only where a result needs it.
void lower_nodes(Lowering& lowering) {
  for (const ForeignNode& node : lowering.graph.nodes) {
    try {
      lower_node(lowering, node);
    } catch (const Error& error) {
      const auto problem = std::make_shared<const std::string>(error.what());
      if (is_loss_word(node)) throw;
      for (const std::string& output : node.outputs)
        if (!output.empty()) lowering.values[output] = Unknown{problem};
    }
  }
}

Made result_of(const Lowering& lowering, const std::string& output) {
  const auto found = lowering.values.find(output);
  if (found == lowering.values.end()) throw Error("the model's output '{}' is made by no node", output);
  if (const auto* const unknown = std::get_if<Unknown>(&found->second)) throw Error(*unknown->problem);
  if (const auto* const made = std::get_if<Made>(&found->second)) return *made;
  throw Error("the model's output '{}' does not depend on its input", output);
}

std::vector<Made> results(Lowering& lowering) {
  std::vector<Made> made;
  for (const std::size_t loss : lowering.losses) made.push_back({loss, 0});
  if (!made.empty()) return made;
  if (lowering.graph.outputs.empty()) throw Error("the model has no outputs");
  const Made output = result_of(lowering, lowering.graph.outputs[0]);
  if (lowering.graph.outputs.size() > 1)
    lowering.note(fmt::format("only '{}' is imported; {} of the model's outputs, with what only they need, left out",
                              lowering.graph.outputs[0],
                              lowering.graph.outputs.size() == 2
                                  ? std::string("another one is")
                                  : fmt::format("{} others are", lowering.graph.outputs.size() - 1)));
  if (lowering.options.loss.empty()) return {output};
  add_loss(lowering, output);
  return {{lowering.losses.back(), 0}};
}

void note_folded_norms(Lowering& lowering) {
  const std::vector<std::string>& folded = lowering.folded_norms;
  if (folded.empty()) return;
  const std::string others = folded.size() > 1 ? fmt::format(" and {} more", folded.size() - 1) : "";
  lowering.note(fmt::format(
      "{} batch norms were folded into convolutions when the file was written ('{}'{}): it trains as it is, "
      "without them; for the model as it was, export it with optimize=False, or by dynamo=False with "
      "training=torch.onnx.TrainingMode.TRAINING",
      folded.size(), folded[0], others));
}

void note_what_changed(Lowering& lowering) {
  note_folded_norms(lowering);
  if (lowering.evaluating_norms > 0)
    lowering.note(
        fmt::format("{} batch norms are written for evaluation; in training they normalize with the batch, as "
                    "the model does in its training mode",
                    lowering.evaluating_norms));
  if (lowering.restored_dropouts > 0)
    lowering.note(
        fmt::format("{} dropouts are written for evaluation; in training they drop", lowering.restored_dropouts));
}

// Constants that the model has no name for: "val_17". They are no weights.
bool is_exporters_name(std::string_view name) {
  constexpr std::string_view kStart = "val_";
  return name.starts_with(kStart) && name.size() > kStart.size() &&
         name.find_first_not_of("0123456789", kStart.size()) == std::string_view::npos;
}

}  // namespace

ImportedNetwork import_graph(const ForeignGraph& graph, const ImportOptions& options) {
  Lowering lowering(graph, options);
  lowering.trains = graph.training;
  for (const ForeignNode& node : graph.nodes) {
    const auto mode = node.attributes.find("training_mode");
    if (node.op != "BatchNormalization" || mode == node.attributes.end()) continue;
    if (const auto* const value = std::get_if<std::int64_t>(&mode->second); value != nullptr && *value != 0)
      lowering.trains = true;
  }
  for (const auto& [name, tensor] : graph.constants)
    lowering.values[name] = known_array(array_of(is_exporters_name(name) ? "" : name, tensor));
  add_input(lowering);
  lower_nodes(lowering);
  ImportedNetwork result = emit(lowering, results(lowering));
  note_what_changed(lowering);
  result.notes = std::move(lowering.notes);
  return result;
}

}  // namespace tide
