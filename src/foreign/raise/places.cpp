// What takes elements to other places.
#include "foreign/raiser.h"

namespace tide {

void Raiser::raise_flatten(const Layer& layer) {
  std::string from = input(layer);
  const Shape& x = shape(layer);
  if (x.rank() > 2 && x.positions() > 1 && x.channels() > 1) {
    std::vector<std::int64_t> order{0};
    for (std::size_t axis = 2; axis < x.rank(); ++axis) order.push_back(static_cast<std::int64_t>(axis));
    order.push_back(1);
    node(layer, "Transpose", {from}, {layer.name + ":last"}).attributes["perm"] = std::move(order);
    from = layer.name + ":last";
  }
  node(layer, "Flatten", {from}).attributes["axis"] = std::int64_t{1};
}

void Raiser::raise_split(LayerId id, const Layer& layer) {
  Names outputs;
  for (std::size_t i = 0; i < layer.outputs.size(); ++i) outputs.push_back(name_of({id, static_cast<std::int32_t>(i)}));
  ForeignNode& made =
      node(layer, "Split", {input(layer), whole_numbers(layer, "sizes", layer.as<SplitOptions>().channels)},
           std::move(outputs));
  made.name = layer.name;
  made.attributes["axis"] = std::int64_t{1};
}

void Raiser::raise_resize(const Layer& layer) {
  const auto& options = layer.as<ResizeOptions>();
  const Shape& x = shape(layer);
  const auto scale = [](double given, std::int64_t in, std::int64_t out) {
    return static_cast<float>(given > 0 ? given : static_cast<double>(out) / static_cast<double>(in));
  };
  // By scales where they say more than the extents.
  const bool scaled = options.scale_height > 0 || options.scale_width > 0;
  Names inputs{input(layer), "", ""};
  if (scaled)
    inputs[2] = constant(layer, "scales",
                         tensor_of<float>(ForeignType::f32, {2},
                                          {scale(options.scale_height, x.height(), options.height),
                                           scale(options.scale_width, x.width(), options.width)}));
  else
    inputs.push_back(whole_numbers(layer, "sizes", {options.height, options.width}));
  ForeignNode& made = node(layer, "Resize", std::move(inputs));
  const bool nearest = options.mode == ResizeMode::nearest;
  static constexpr const char* kCoordinates[] = {"half_pixel", "align_corners", "asymmetric"};
  made.attributes = {
      {"axes", std::vector<std::int64_t>{2, 3}},
      {"mode", std::string(nearest ? "nearest" : "linear")},
      {"coordinate_transformation_mode", std::string(kCoordinates[static_cast<std::size_t>(options.coordinates)])}};
  if (nearest)
    made.attributes["nearest_mode"] =
        std::string(options.coordinates == ResizeCoordinates::half_pixel ? "round_prefer_ceil" : "floor");
}

void Raiser::raise_pad(const Layer& layer) {
  const auto& options = layer.as<PadOptions>();
  std::vector<std::int64_t> pads{0};
  pads.insert(pads.end(), options.before.begin(), options.before.end());
  pads.push_back(0);
  pads.insert(pads.end(), options.after.begin(), options.after.end());
  static constexpr const char* kModes[] = {"constant", "reflect", "edge"};
  Names inputs{input(layer), whole_numbers(layer, "pads", std::move(pads))};
  if (options.mode == PadMode::constant) inputs.push_back(number(layer, "value", options.value));
  node(layer, "Pad", std::move(inputs)).attributes["mode"] =
      std::string(kModes[static_cast<std::size_t>(options.mode)]);
}

void Raiser::raise_shuffle(const Layer& layer) {
  const Shape& x = shape(layer);
  const std::int64_t groups = layer.as<ShuffleOptions>().groups;
  std::vector<std::int64_t> parted{groups, x.channels() / groups}, order{0, 2, 1};
  for (std::size_t axis = 2; axis < x.rank(); ++axis) {
    parted.push_back(x.extent(axis));
    order.push_back(static_cast<std::int64_t>(axis) + 1);
  }
  reshaped(layer, input(layer), std::move(parted), layer.name + ":parted");
  node(layer, "Transpose", {layer.name + ":parted"}, {layer.name + ":turned"}).attributes["perm"] = std::move(order);
  reshaped(layer, layer.name + ":turned", sample_of(x), layer.name);
}

}  // namespace tide
