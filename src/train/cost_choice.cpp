#include "train/cost_choice.h"

#include <algorithm>
#include <cctype>

#include "cost/device_model.h"

namespace tide {
namespace {

bool is_cuda(const Backend& backend) { return backend.name() == "cuda"; }

// "cuda NVIDIA H200 driver=..." is the "h200".
const DeviceSheet* sheet_of(const Backend& backend) {
  if (!is_cuda(backend)) return nullptr;
  std::string description = backend.description();
  std::ranges::transform(description, description.begin(), [](unsigned char c) { return std::tolower(c); });
  std::erase(description, ' ');
  for (const DeviceSheet& sheet : device_sheets())
    if (description.find(sheet.name) != std::string::npos) return &sheet;
  return nullptr;
}

CostChoice modelled(std::shared_ptr<const CostModel> model) {
  const std::string source = fmt::format("modelled ({})", model->name());
  return {std::move(model), nullptr, source, ""};
}

// By its data sheet where there is one for it, else as a plain processor.
CostChoice model_of(const Backend& backend, double link_bytes_per_second) {
  const DeviceSheet* const sheet = sheet_of(backend);
  Device device = sheet != nullptr ? sheet->rates() : generic_cpu();
  if (link_bytes_per_second > 0)
    device.link_bytes_per_second = std::min(device.link_bytes_per_second, link_bytes_per_second);
  if (sheet != nullptr) return modelled(std::make_shared<DeviceModel>(std::move(device)));
  CostChoice choice = modelled(std::make_shared<RooflineModel>(std::move(device)));
  if (is_cuda(backend))
    choice.warning = fmt::format("there is no data sheet of {}: it is timed as a plain processor; use --profile auto",
                                 backend.description());
  return choice;
}

CostChoice measure_on(Backend& backend, double link_bytes_per_second) {
  CostChoice choice;
  choice.measured = std::make_shared<MeasuredCost>(backend, profile_cache_path(backend), link_bytes_per_second);
  choice.model = choice.measured;
  choice.source = fmt::format("measured ({})", backend.description());
  return choice;
}

CostChoice read_from(const std::string& file, const Backend& backend, double link_bytes_per_second) {
  std::vector<Profile> profiles = read_profiles(file);
  CostChoice choice;
  choice.source = fmt::format("measured ({})", file);
  const bool is_known = std::ranges::any_of(
      profiles, [name = backend.description()](const Profile& profile) { return profile.backend == name; });
  if (!is_known) {
    choice.source = fmt::format("modelled (generic-cpu), with the link of {}", file);
    choice.warning = fmt::format(
        "{} has times of '{}', none of '{}': tasks are modelled; take the times of this backend with tide profile",
        file, profiles.front().backend, backend.description());
  }
  choice.model = std::make_shared<ProfileModel>(std::move(profiles), link_bytes_per_second);
  return choice;
}

}  // namespace

CostChoice choose_cost(Backend& backend, const CostRequest& request) {
  const double link = request.link_bytes_per_second;
  if (request.profile == "auto" || (request.profile.empty() && is_cuda(backend))) return measure_on(backend, link);
  if (request.profile == "none" || request.profile.empty()) return model_of(backend, link);
  return read_from(request.profile, backend, link);
}

CostChoice choose_cost(const DeviceSheet& sheet, double link_bytes_per_second) {
  Device device = sheet.rates();
  if (link_bytes_per_second > 0) device.link_bytes_per_second = link_bytes_per_second;
  return modelled(std::make_shared<DeviceModel>(std::move(device)));
}

}  // namespace tide
