#include "zoo/zoo.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>

#include "zoo/families.h"

namespace tide {
namespace {

struct Entry {
  std::string_view name;     // before the colon, if it takes numbers
  std::string_view letters;  // "A,B,C,D": as many numbers follow the colon
  std::string_view description;
  Shape sample;
  std::int64_t classes;
  Network (*make)(const ZooRequest&);
  std::vector<std::int64_t> numbers = {};  // of a model that is one of a family
  bool sample_per_step = false;            // times the last number
};

const Shape kSmall{1, 3, 224, 224}, kPaper{1, 3, 227, 227}, kLarge{1, 3, 299, 299};

std::vector<Entry> entries() {
  return {
      {"digits", "", "small conv-batchnorm net for the 8x8 digits", {1, 1, 8, 8}, 10, make_digits},
      {"lenet", "", "LeNet for MNIST", {1, 1, 28, 28}, 10, make_lenet},
      {"alexnet", "", "AlexNet as in SuperNeurons: LRN, no groups", kPaper, 1000, make_alexnet},
      {"vgg16", "", "VGG-16", kSmall, 1000, make_vgg16},
      {"vgg19", "", "VGG-19", kSmall, 1000, make_vgg19},
      {"vgg101", "", "moDNN's deeper VGG-19: 98 convolutions (12,12,24,25,25)", kSmall, 1000, make_vgg101},
      {"resnet18", "", "ResNet-18", kSmall, 1000, make_resnet18},
      {"resnet34", "", "ResNet-34", kSmall, 1000, make_resnet34},
      {"resnet50", "", "ResNet-50 v1.5", kSmall, 1000, make_resnet, {3, 4, 6, 3}},
      {"resnet101", "", "ResNet-101 v1.5", kSmall, 1000, make_resnet, {3, 4, 23, 3}},
      {"resnet152", "", "ResNet-152 v1.5", kSmall, 1000, make_resnet, {3, 8, 36, 3}},
      {"resnet", "A,B,C,D", "ResNet v1.5 with that many bottleneck blocks in its stages", kSmall, 1000, make_resnet},
      {"resnext50", "", "ResNeXt-50 32x4d", kSmall, 1000, make_resnext, {3, 4, 6, 3}},
      {"wide-resnet50", "", "Wide ResNet-50-2", kSmall, 1000, make_wide_resnet, {3, 4, 6, 3}},
      {"preresnet", "DEPTH", "pre-activation ResNet of depth 3 units + 2", kSmall, 1000, make_preresnet},
      {"inception-v3", "", "Inception-v3 without auxiliary head", kLarge, 1000, make_inception_v3},
      {"inception-v4", "", "Inception-v4", kLarge, 1000, make_inception_v4},
      {"densenet121", "", "DenseNet-121", kSmall, 1000, make_densenet121},
      {"googlenet", "", "GoogLeNet with batch norms, without auxiliary heads", kSmall, 1000, make_googlenet},
      {"squeezenet", "", "SqueezeNet 1.1", kSmall, 1000, make_squeezenet},
      {"mobilenet-v2", "", "MobileNet-v2", kSmall, 1000, make_mobilenet_v2},
      {"mobilenet-v3-large", "", "MobileNet-v3, large", kSmall, 1000, make_mobilenet_v3_large},
      {"mobilenet-v3-small", "", "MobileNet-v3, small", kSmall, 1000, make_mobilenet_v3_small},
      {"efficientnet-b0", "", "EfficientNet-B0", kSmall, 1000, make_efficientnet, {100, 100, 20}},
      {"efficientnet-b1", "", "EfficientNet-B1", {1, 3, 240, 240}, 1000, make_efficientnet, {100, 110, 20}},
      {"efficientnet-b2", "", "EfficientNet-B2", {1, 3, 288, 288}, 1000, make_efficientnet, {110, 120, 30}},
      {"efficientnet-b3", "", "EfficientNet-B3", {1, 3, 300, 300}, 1000, make_efficientnet, {120, 140, 30}},
      {"efficientnet-b4", "", "EfficientNet-B4", {1, 3, 380, 380}, 1000, make_efficientnet, {140, 180, 40}},
      {"regnet-y-400mf", "", "RegNet-Y, 400 million products", kSmall, 1000, make_regnet_y_400mf},
      {"regnet-y-800mf", "", "RegNet-Y, 800 million products", kSmall, 1000, make_regnet_y_800mf},
      {"regnet-x-400mf", "", "RegNet-X, 400 million products", kSmall, 1000, make_regnet_x_400mf},
      {"regnet-x-800mf", "", "RegNet-X, 800 million products", kSmall, 1000, make_regnet_x_800mf},
      {"shufflenet-v2", "", "ShuffleNet-v2 of width 1", kSmall, 1000, make_shufflenet_v2},
      {"deeplab-v3", "", "segmentation, DeepLab-v3 on ResNet-50", kSmall, 21, make_deeplab_v3},
      {"unet", "", "segmentation, U-Net; height and width multiples of 16", {1, 3, 256, 256}, 2, make_unet},
      {"fcn", "", "segmentation, FCN-32s on VGG-16; height and width multiples of 32", kSmall, 21, make_fcn},
      {"lstm",
       "LAYERS,HIDDEN,STEPS",
       "unrolled LSTM; the sample is STEPS vectors of 50",
       {1, 50, 1, 1},
       5000,
       make_lstm,
       {},
       true},
      {"superneurons/resnet50",
       "",
       "SuperNeurons' ResNet-50: stride in the first 1x1",
       kPaper,
       1000,
       make_superneurons_resnet,
       {3, 4, 6, 3}},
      {"superneurons/resnet101", "", "SuperNeurons' ResNet-101", kPaper, 1000, make_superneurons_resnet, {3, 4, 23, 3}},
      {"superneurons/resnet152", "", "SuperNeurons' ResNet-152", kPaper, 1000, make_superneurons_resnet, {3, 8, 36, 3}},
  };
}

std::string pattern(const Entry& entry) {
  return entry.letters.empty() ? std::string(entry.name) : fmt::format("{}:{}", entry.name, entry.letters);
}

std::int64_t parse_number(std::string_view text, std::string_view name) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1)
    throw Error("model '{}': '{}' is not a positive whole number", name, text);
  return number;
}

std::vector<std::int64_t> parse_numbers(std::string_view text, std::string_view name) {
  std::vector<std::int64_t> numbers;
  for (;;) {
    const std::size_t comma = text.find(',');
    numbers.push_back(parse_number(text.substr(0, comma), name));
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

// How many letters must change, come or go to make one word of the other (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

[[noreturn]] void throw_unknown(std::string_view name, std::string_view asked, const std::vector<Entry>& all) {
  std::vector<std::pair<std::size_t, std::string>> near;
  // A long word is near to nothing, and slow to compare.
  const std::string_view word = asked.substr(0, 64);
  for (const Entry& entry : all) near.emplace_back(distance(word, entry.name), pattern(entry));
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  throw Error("there is no model '{}'; did you mean '{}', '{}' or '{}'?", name.substr(0, 64), near[0].second,
              near[1].second, near[2].second);
}

}  // namespace

std::vector<ModelInfo> models() {
  std::vector<ModelInfo> infos;
  for (const Entry& entry : entries())
    infos.push_back({pattern(entry), std::string(entry.description), entry.sample, entry.classes});
  return infos;
}

Network make_model(std::string_view name, std::optional<Shape> sample) {
  const std::size_t at = name.find('@');
  const std::string_view body = name.substr(0, at);
  const std::size_t colon = body.find(':');
  const std::string_view base = body.substr(0, colon);
  const bool with_numbers = colon != std::string_view::npos;

  const std::vector<Entry> all = entries();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Entry& entry) {
    return entry.name == base && entry.letters.empty() != with_numbers;
  });
  if (found == all.end()) throw_unknown(name, base, all);

  ZooRequest request{std::string(name), found->sample, found->classes, found->numbers};
  if (at != std::string_view::npos) request.classes = parse_number(name.substr(at + 1), name);
  if (with_numbers) {
    request.numbers = parse_numbers(body.substr(colon + 1), name);
    const auto wanted = 1 + std::count(found->letters.begin(), found->letters.end(), ',');
    if (static_cast<std::ptrdiff_t>(request.numbers.size()) != wanted)
      throw Error("model '{}' has {} numbers; write {}", name, request.numbers.size(), pattern(*found));
  }
  if (sample)
    request.sample = *sample;
  else if (found->sample_per_step)
    request.sample = request.sample.with_extent(1, checked_multiply(request.sample.channels(), request.numbers.back()));
  return found->make(request);
}

}  // namespace tide
