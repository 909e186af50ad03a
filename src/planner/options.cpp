#include "planner/options.h"

#include <array>

#include "base/names.h"

namespace tide {

namespace {

constexpr std::array<std::string_view, 3> kParametersNames{"device", "host", "auto"};

}  // namespace

std::string_view parameters_name(Parameters parameters) {
  return kParametersNames[static_cast<std::size_t>(parameters)];
}

Parameters parameters_from_name(std::string_view name) {
  return find_name<Parameters>(kParametersNames, name, "place for parameters");
}

PlannerOptions within(const std::optional<Bytes>& device_memory) {
  PlannerOptions options;
  options.memory[Tier::device] = device_memory;
  return options;
}

Numerics allowed_by(const Batch& batch) {
  const auto* const cut = std::get_if<SubBatches>(&batch);
  return cut != nullptr ? cut->allowed : Numerics::identical;
}

std::int64_t samples_asked(const Batch& batch) {
  const auto* const cut = std::get_if<SubBatches>(&batch);
  return cut != nullptr ? cut->samples : 0;
}

bool has_exact_batch_norm(const Batch& batch) {
  const auto* const cut = std::get_if<SubBatches>(&batch);
  return cut != nullptr && cut->exact_batch_norm;
}

}  // namespace tide
