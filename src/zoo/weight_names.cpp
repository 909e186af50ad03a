#include "zoo/weight_names.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

namespace tide {
namespace {

// A layer's name here to the module's there, by the first rule whose pattern is all of the name. Where modules count
// from zero and layers from one, "$1-" stands for the first group less one.
struct Rule {
  const char* pattern;
  const char* module;
};
using Rules = std::vector<Rule>;

const Rules kSameNames{{"(.*)", "$1"}};

const Rules kResnet{
    {"conv1", "conv1"},
    {"conv1\\.norm", "bn1"},
    {"stage(\\d+)\\.block(\\d+)\\.conv(\\d)", "layer$1.$2-.conv$3"},
    {"stage(\\d+)\\.block(\\d+)\\.conv(\\d)\\.norm", "layer$1.$2-.bn$3"},
    {"stage(\\d+)\\.block(\\d+)\\.projection", "layer$1.$2-.downsample.0"},
    {"stage(\\d+)\\.block(\\d+)\\.projection\\.norm", "layer$1.$2-.downsample.1"},
    {"fc", "fc"},
};

const Rules kDensenet{
    {"conv0", "features.conv0"},
    {"conv0\\.norm", "features.norm0"},
    {"block(\\d+)\\.layer(\\d+)\\.conv(\\d)", "features.denseblock$1.denselayer$2.conv$3"},
    {"block(\\d+)\\.layer(\\d+)\\.conv(\\d)\\.norm", "features.denseblock$1.denselayer$2.norm$3"},
    {"transition(\\d+)", "features.transition$1.conv"},
    {"transition(\\d+)\\.norm", "features.transition$1.norm"},
    {"last\\.norm", "features.norm5"},
    {"fc", "classifier"},
};

const Rules kInceptionV3{
    {"conv1a", "Conv2d_1a_3x3.conv"},
    {"conv1a\\.norm", "Conv2d_1a_3x3.bn"},
    {"conv(2[ab])", "Conv2d_$1_3x3.conv"},
    {"conv(2[ab])\\.norm", "Conv2d_$1_3x3.bn"},
    {"conv3b", "Conv2d_3b_1x1.conv"},
    {"conv3b\\.norm", "Conv2d_3b_1x1.bn"},
    {"conv4a", "Conv2d_4a_3x3.conv"},
    {"conv4a\\.norm", "Conv2d_4a_3x3.bn"},
    {"mixed(\\d[a-e])\\.([^.]*)", "Mixed_$1.$2.conv"},
    {"mixed(\\d[a-e])\\.([^.]*)\\.norm", "Mixed_$1.$2.bn"},
    {"fc", "fc"},
};

// timm's, of blocks that expand, filter and project. Those of the first stage do not expand.
const Rules kTimmEfficientnet{
    {"features\\.0\\.0", "conv_stem"},
    {"features\\.0\\.1", "bn1"},
    {"features\\.1\\.(\\d+)\\.block\\.0\\.0", "blocks.0.$1.conv_dw"},
    {"features\\.1\\.(\\d+)\\.block\\.0\\.1", "blocks.0.$1.bn1"},
    {"features\\.1\\.(\\d+)\\.block\\.1\\.fc1", "blocks.0.$1.se.conv_reduce"},
    {"features\\.1\\.(\\d+)\\.block\\.1\\.fc2", "blocks.0.$1.se.conv_expand"},
    {"features\\.1\\.(\\d+)\\.block\\.2\\.0", "blocks.0.$1.conv_pw"},
    {"features\\.1\\.(\\d+)\\.block\\.2\\.1", "blocks.0.$1.bn2"},
    {"features\\.([2-7])\\.(\\d+)\\.block\\.0\\.0", "blocks.$1-.$2.conv_pw"},
    {"features\\.([2-7])\\.(\\d+)\\.block\\.0\\.1", "blocks.$1-.$2.bn1"},
    {"features\\.([2-7])\\.(\\d+)\\.block\\.1\\.0", "blocks.$1-.$2.conv_dw"},
    {"features\\.([2-7])\\.(\\d+)\\.block\\.1\\.1", "blocks.$1-.$2.bn2"},
    {"features\\.([2-7])\\.(\\d+)\\.block\\.2\\.fc1", "blocks.$1-.$2.se.conv_reduce"},
    {"features\\.([2-7])\\.(\\d+)\\.block\\.2\\.fc2", "blocks.$1-.$2.se.conv_expand"},
    {"features\\.([2-7])\\.(\\d+)\\.block\\.3\\.0", "blocks.$1-.$2.conv_pwl"},
    {"features\\.([2-7])\\.(\\d+)\\.block\\.3\\.1", "blocks.$1-.$2.bn3"},
    {"features\\.8\\.0", "conv_head"},
    {"features\\.8\\.1", "bn2"},
    {"classifier\\.1", "classifier"},
};

// By layer of ours. A layer that no rule has is left out.
using Modules = std::map<std::string, std::string>;

// Puts what a pattern's groups matched into `module`: "$1", or "$1-" for one less.
std::string filled_in(std::string_view module, const std::smatch& match) {
  std::string result;
  for (std::size_t i = 0; i < module.size(); ++i) {
    if (module[i] != '$') {
      result += module[i];
      continue;
    }
    const std::string group = match[static_cast<std::size_t>(module[++i] - '0')].str();
    const bool less = i + 1 < module.size() && module[i + 1] == '-';
    result += less ? std::to_string(std::stoi(group) - 1) : group;
    if (less) ++i;
  }
  return result;
}

Modules by_rules(const Network& network, const Rules& rules) {
  std::vector<std::regex> patterns;
  for (const Rule& rule : rules) patterns.emplace_back(rule.pattern);
  Modules modules;
  for (const Layer& layer : network.layers)
    for (std::size_t r = 0; r < rules.size(); ++r)
      if (std::smatch match; std::regex_match(layer.name, match, patterns[r])) {
        modules[layer.name] = filled_in(rules[r].module, match);
        break;
      }
  return modules;
}

// The layers of VGG are numbered there: convolutions, functions and pools alike, and those behind them anew.
Modules of_vgg(const Network& network) {
  Modules modules;
  int feature = 0;
  for (const Layer& layer : network.layers) {
    const bool pool = layer.kind == LayerKind::max_pool, convolution = layer.kind == LayerKind::convolution;
    if (convolution) modules[layer.name] = fmt::format("features.{}", feature);
    feature += convolution ? 2 : pool ? 1 : 0;
  }
  for (int i = 0; i < 3; ++i) modules[fmt::format("fc{}", i + 1)] = fmt::format("classifier.{}", 3 * i);
  return modules;
}

WeightNames named(const Network& network, const Modules& modules, std::string whose) {
  WeightNames result{std::move(whose), {}};
  std::set<std::size_t> done;  // parameters may be shared
  for (const Layer& layer : network.layers)
    for (const auto* list : {&layer.parameters, &layer.statistics})
      for (const LayerParameter& used : *list) {
        const auto module = modules.find(layer.name);
        if (module == modules.end() || !done.insert(used.id.index()).second) continue;
        // Elements lie alike, those of a matrix behind an image too.
        result.names.push_back({network.parameters[used.id.index()].name,
                                fmt::format("{}.{}", module->second, pytorch_suffix(used.role)),
                                {},
                                {}});
      }
  return result;
}

}  // namespace

std::vector<WeightNames> weight_names(const Network& network, std::string_view model) {
  const std::string_view base = model.substr(0, model.find_first_of("@:"));
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), base) != names.end();
  };
  const auto begins = [&](std::string_view start) { return base.starts_with(start); };
  std::vector<WeightNames> known;
  const auto add = [&](const Modules& modules, const char* whose) { known.push_back(named(network, modules, whose)); };
  if (begins("resnet") || is_one_of({"resnext50", "wide-resnet50"})) {
    add(by_rules(network, kResnet), "torchvision");
  } else if (base == "densenet121") {
    add(by_rules(network, kDensenet), "torchvision");
  } else if (base == "inception-v3") {
    add(by_rules(network, kInceptionV3), "torchvision");
  } else if (is_one_of({"vgg16", "vgg19"})) {
    add(of_vgg(network), "torchvision");
  } else if (begins("mobilenet") || begins("efficientnet") || begins("regnet") ||
             is_one_of({"shufflenet-v2", "googlenet", "squeezenet", "deeplab-v3"})) {
    add(by_rules(network, kSameNames), "torchvision");
    if (begins("efficientnet")) add(by_rules(network, kTimmEfficientnet), "timm");
  } else if (base == "unet") {
    add(by_rules(network, kSameNames), "our own");
  }
  return known;
}

const WeightNames& best_match(const std::vector<WeightNames>& known, std::span<const std::string> arrays) {
  const std::set<std::string> present(arrays.begin(), arrays.end());
  const auto found = [&](const WeightNames& names) {
    return std::count_if(names.names.begin(), names.names.end(),
                         [&](const WeightName& name) { return present.contains(name.array); });
  };
  return *std::max_element(known.begin(), known.end(),
                           [&](const WeightNames& a, const WeightNames& b) { return found(a) < found(b); });
}

}  // namespace tide
