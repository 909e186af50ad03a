#include "train/checkpoint.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "formats/safetensors.h"

namespace tide {
namespace {

std::uint64_t number_in(const SafeTensors& content, const std::string& key, const std::string& file) {
  const auto it = content.metadata.find(key);
  std::uint64_t value = 0;
  if (it == content.metadata.end())
    throw Error("{} has no '{}' in its metadata: it is not a checkpoint of tide train", file, key);
  const char* const end = it->second.data() + it->second.size();
  const auto [at, error] = std::from_chars(it->second.data(), end, value);
  if (error != std::errc{} || at != end) throw Error("{}: '{}' in its metadata is not a number", file, key);
  return value;
}

std::string text_of(const ImageReading& reading) {
  return nlohmann::ordered_json{
      {"mean", reading.normalization.mean}, {"deviation", reading.normalization.deviation}, {"kept", reading.kept}}
      .dump();
}

std::optional<ImageReading> reading_in(const SafeTensors& content, const std::string& file) {
  const auto it = content.metadata.find("images");
  if (it == content.metadata.end()) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(it->second, nullptr, false);
  ImageReading reading;
  const auto read_three = [&](const char* name, std::array<double, 3>& to) {
    if (!json.is_object() || !json.contains(name) || !json[name].is_array() || json[name].size() != 3) return false;
    for (std::size_t i = 0; i < 3; ++i) {
      if (!json[name][i].is_number()) return false;
      to[i] = json[name][i];
    }
    return true;
  };
  const bool is_whole = read_three("mean", reading.normalization.mean) &&
                        read_three("deviation", reading.normalization.deviation) && json.contains("kept") &&
                        json["kept"].is_number();
  if (is_whole) reading.kept = json["kept"];
  const auto is_good = [](double deviation) { return std::isfinite(deviation) && deviation > 0; };
  if (!is_whole || !(reading.kept > 0 && reading.kept <= 1) ||
      !std::ranges::all_of(reading.normalization.deviation, is_good))
    throw Error("{}: 'images' in its metadata does not say how images are read", file);
  return reading;
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  SafeTensors content;
  content.metadata = {{"format", "tidepool checkpoint"},
                      {"model", checkpoint.model},
                      {"steps", std::to_string(checkpoint.steps)},
                      {"seed", std::to_string(checkpoint.seed)}};
  if (!checkpoint.classes.empty()) content.metadata["classes"] = fmt::format("{}", fmt::join(checkpoint.classes, "\n"));
  if (checkpoint.reading) content.metadata["images"] = text_of(*checkpoint.reading);
  for (const NamedTensor& tensor : checkpoint.tensors)
    content.tensors.push_back(
        {tensor.name, {tensor.shape.extents().begin(), tensor.shape.extents().end()}, tensor.values});
  write_safetensors(path, content);
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  SafeTensors content = read_safetensors(path);
  Checkpoint checkpoint;
  checkpoint.model = content.metadata["model"];
  checkpoint.steps = number_in(content, "steps", path.string());
  checkpoint.seed = number_in(content, "seed", path.string());
  std::istringstream classes(content.metadata["classes"]);
  for (std::string name; std::getline(classes, name);) checkpoint.classes.push_back(name);
  checkpoint.reading = reading_in(content, path.string());
  for (SafeTensor& tensor : content.tensors) {
    if (tensor.shape.size() > Shape::kMostRank)
      throw Error("{}: '{}' has more than {} dimensions", path.string(), tensor.name, Shape::kMostRank);
    const Shape shape = tensor.shape.empty() ? Shape{1} : Shape(tensor.shape);
    checkpoint.tensors.push_back({std::move(tensor.name), shape, std::move(tensor.values)});
  }
  return checkpoint;
}

}  // namespace tide
