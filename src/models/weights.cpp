#include "models/weights.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "base/error.h"
#include "foreign/lower.h"
#include "formats/safetensors.h"
#include "network/kind.h"
#include "network/reordered.h"

namespace tide {
namespace {

// zip files, as torch.save() writes them, and pickles, as it did. The length that a safetensors file begins with may
// look like either; but behind its eight bytes there is a brace.
void refuse_pickles(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 9> start{};
  file.read(start.data(), start.size());
  if (file.gcount() < 2 || (file.gcount() == start.size() && start.back() == '{')) return;
  const bool zip = start[0] == 'P' && start[1] == 'K', pickle = static_cast<unsigned char>(start[0]) == 0x80;
  if (!zip && !pickle) return;
  std::filesystem::path converted = path;
  converted.replace_extension(".safetensors");
  throw Error(
      "{0} is a pickle of PyTorch, which can run programs when it is opened; convert it once, in Python:\n"
      "  import torch; from safetensors.torch import save_file\n"
      "  save_file(torch.load(\"{0}\", weights_only=True), \"{1}\")",
      path.string(), converted.string());
}

std::vector<WeightName> own_names(const Network& network) {
  std::vector<WeightName> names;
  for (const Parameter& parameter : network.parameters) names.push_back({parameter.name, parameter.name, {}, {}});
  return names;
}

// As PyTorch calls the arrays of a module that has the layer's name. Of layers that share theirs, the first.
std::vector<WeightName> module_names(const Network& network) {
  std::vector<WeightName> names;
  std::set<std::size_t> done;
  for (const Layer& layer : network.layers)
    for (const auto* list : {&layer.parameters, &layer.statistics})
      for (const LayerParameter& used : *list)
        if (done.insert(used.id.index()).second)
          names.push_back({network.parameters[used.id.index()].name,
                           fmt::format("{}.{}", layer.name, pytorch_suffix(used.role)),
                           {},
                           {}});
  return names;
}

// A matrix that lies {in, out} in the file, where nobody says that it does. Of square ones it cannot be seen.
bool lies_the_other_way(const Network& network, const Parameter& parameter, const WeightName& name,
                        const SafeTensor& tensor) {
  if (!name.axes.empty() || tensor.shape.size() != 2 || tensor.shape[0] == tensor.shape[1]) return false;
  return array_extents(network, parameter) == std::vector{tensor.shape[1], tensor.shape[0]};
}

// The parameters whose results go into losses, through layers without any.
std::set<std::string> head_of(const Network& network) {
  std::set<std::string> head;
  std::vector<bool> seen(network.layers.size(), false);
  std::vector<LayerId> open;
  for (std::size_t l = 0; l < network.layers.size(); ++l)
    if (is_loss(network.layers[l])) open.push_back(LayerId(l));
  while (!open.empty()) {
    const Layer& layer = network.layer(open.back());
    const std::size_t index = open.back().index();
    open.pop_back();
    if (seen[index]) continue;
    seen[index] = true;
    for (const LayerParameter& used : layer.parameters) head.insert(network.parameters[used.id.index()].name);
    if (layer.parameters.empty())
      for (const Value input : layer.inputs) open.push_back(input.layer);
  }
  return head;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "");
}

}  // namespace

LoadedWeights load_weights(const Network& network, const std::vector<WeightNames>& known,
                           const std::filesystem::path& path) {
  refuse_pickles(path);
  const SafeTensors file = read_safetensors(path);
  std::map<std::string, const SafeTensor*> arrays;
  std::vector<std::string> present;
  for (const SafeTensor& tensor : file.tensors) {
    arrays[tensor.name] = &tensor;
    present.push_back(tensor.name);
  }
  std::vector<WeightNames> candidates = known;
  candidates.push_back({"Tidepool", own_names(network)});
  candidates.push_back({"PyTorch", module_names(network)});
  const WeightNames& names = best_match(candidates, present);

  std::set<std::string> named;
  for (const WeightName& name : names.names) named.insert(name.array);
  const std::set<std::string> head = head_of(network);
  LoadedWeights loaded;
  std::vector<std::string> missing, anew;
  for (const WeightName& name : names.names) {
    const Parameter& parameter = *std::find_if(network.parameters.begin(), network.parameters.end(),
                                               [&](const Parameter& p) { return p.name == name.parameter; });
    auto found = arrays.find(name.array);
    // What has no name elsewhere has its own.
    if (found == arrays.end() && !named.contains(parameter.name)) found = arrays.find(parameter.name);
    if (found != arrays.end() && lies_the_other_way(network, parameter, name, *found->second))
      throw Error(
          "{}: '{}' is {}, the other way round from what {} needs; give the weights to the model that the file "
          "is of",
          path.string(), found->first, fmt::join(found->second->shape, "x"), network.name);
    const bool fits =
        found != arrays.end() && static_cast<std::int64_t>(found->second->values.size()) == parameter.shape.elements();
    if (fits)
      loaded.values[parameter.name] = to_parameter_order(name, found->second->values);
    else if (head.contains(parameter.name))
      anew.push_back(name.array);
    else if (found == arrays.end())
      missing.push_back(name.array);
    else
      throw Error("{}: '{}' has {} values, parameter '{}' of {} has {}; name the model that the file is of",
                  path.string(), name.array, found->second->values.size(), parameter.name, network.name,
                  parameter.shape.elements());
    if (found != arrays.end()) arrays.erase(found);
  }
  if (!missing.empty())
    throw Error("{}: has no {}, which {} needs ({} names); name the model that the file is of", path.string(),
                listed(missing), network.name, names.whose);
  if (!anew.empty())
    loaded.notes.push_back(
        fmt::format("{} start anew: the file has them for other classes, or not at all", listed(anew)));
  std::vector<std::string> unused;
  for (const auto& [name, tensor] : arrays) unused.push_back(name);
  if (!unused.empty()) loaded.notes.push_back(fmt::format("not used of {}: {}", path.string(), listed(unused)));
  return loaded;
}

void save_weights(const Network& network, const std::vector<WeightName>& names,
                  const std::map<std::string, std::vector<float>>& values, const std::filesystem::path& path) {
  SafeTensors content;
  content.metadata["format"] = "pt";
  for (const WeightName& name : names.empty() ? own_names(network) : names) {
    const auto found = values.find(name.parameter);
    if (found == values.end()) continue;
    const Parameter& parameter = *std::find_if(network.parameters.begin(), network.parameters.end(),
                                               [&](const Parameter& p) { return p.name == name.parameter; });
    SafeTensor tensor{name.array, name.seen_as, to_array_order(name, found->second)};
    if (tensor.shape.empty()) tensor.shape = array_extents(network, parameter);
    content.tensors.push_back(std::move(tensor));
  }
  write_safetensors(path, content);
}

}  // namespace tide
