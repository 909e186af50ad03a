#include "network/reordered.h"

#include "base/checked.h"
#include "base/error.h"

namespace tide {
namespace {

// Where each element of the parameter lies in the array.
std::vector<std::size_t> places_in_array(const WeightName& weight, std::size_t count) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : weight.seen_as) elements = checked_multiply(elements, extent);
  if (weight.axes.size() != weight.seen_as.size() || elements != static_cast<std::int64_t>(count))
    throw Error("weights '{}': {} values do not fit the extents that they are seen with", weight.array, count);
  std::vector<std::int64_t> strides(weight.seen_as.size(), 1);
  for (std::size_t axis = strides.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * weight.seen_as[axis];

  std::vector<std::size_t> places(count);
  std::vector<std::int64_t> index(weight.axes.size(), 0);  // by axis of the parameter
  std::int64_t place = 0;
  for (std::size_t& result : places) {
    result = static_cast<std::size_t>(place);
    for (std::size_t i = index.size(); i-- > 0;) {
      const auto axis = static_cast<std::size_t>(weight.axes[i]);
      place += strides[axis];
      if (++index[i] < weight.seen_as[axis]) break;
      place -= strides[axis] * weight.seen_as[axis];
      index[i] = 0;
    }
  }
  return places;
}

template <typename Number>
std::vector<Number> ordered_as_parameter(const WeightName& weight, std::span<const Number> array) {
  if (weight.axes.empty()) return {array.begin(), array.end()};
  const std::vector<std::size_t> places = places_in_array(weight, array.size());
  std::vector<Number> values(array.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = array[places[i]];
  return values;
}

template <typename Number>
std::vector<Number> ordered_as_array(const WeightName& weight, std::span<const Number> parameter) {
  if (weight.axes.empty()) return {parameter.begin(), parameter.end()};
  const std::vector<std::size_t> places = places_in_array(weight, parameter.size());
  std::vector<Number> values(parameter.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[places[i]] = parameter[i];
  return values;
}

}  // namespace

std::vector<float> to_parameter_order(const WeightName& weight, std::span<const float> array) {
  return ordered_as_parameter(weight, array);
}
std::vector<float> to_array_order(const WeightName& weight, std::span<const float> parameter) {
  return ordered_as_array(weight, parameter);
}
std::vector<double> to_parameter_order(const WeightName& weight, std::span<const double> array) {
  return ordered_as_parameter(weight, array);
}
std::vector<double> to_array_order(const WeightName& weight, std::span<const double> parameter) {
  return ordered_as_array(weight, parameter);
}

std::vector<std::int64_t> array_extents(const Network& network, const Parameter& parameter) {
  const Shape& shape = parameter.shape;
  const bool per_channel =
      parameter.role != ParameterRole::weight && shape.elements() == shape.channels() * shape.batch();
  if (per_channel) return {shape.elements()};
  for (const Layer& layer : network.layers)
    for (const LayerParameter& used : layer.parameters)
      if (layer.kind == LayerKind::fully_connected && &network.parameters[used.id.index()] == &parameter)
        return used.role == ParameterRole::weight ? std::vector{shape.batch(), shape.per_sample()}
                                                  : std::vector{shape.elements()};
  return {shape.extents().begin(), shape.extents().end()};
}

}  // namespace tide
