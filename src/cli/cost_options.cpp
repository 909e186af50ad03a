#include "cli/cost_options.h"

#include "cli/link_rate.h"
#include "cost/device_model.h"
#include "cost/devices.h"
#include "cost/profile.h"
#include "step/build.h"

namespace tide {

void CostArguments::add_to(CLI::App& app) {
  app.add_option("--device", device,
                 "Plan for this device instead of the backend (see tide devices); --memory device: all it has");
  app.add_option("--profile", profile, "Take measured times from this file (see tide profile)");
  app.add_option("--link", link, "Rate of copies to host memory each way, such as 8GB/s; pageable: half the device's");
}

std::shared_ptr<const CostModel> CostArguments::model() const {
  if (!device.empty() && !profile.empty()) throw Error("--device and --profile do not go together: give one of them");
  if (link == "pageable" && device.empty()) throw Error("--link pageable needs a --device whose link it halves");
  if (!profile.empty()) return load_profile(profile, link.empty() ? 0 : parse_link_rate(link));
  Device rates = device.empty() ? generic_cpu() : find_device(device).rates();
  if (link == "pageable")
    rates.link_bytes_per_second = find_device(device).pageable_link();
  else if (!link.empty())
    rates.link_bytes_per_second = parse_link_rate(link);
  if (device.empty()) return std::make_shared<RooflineModel>(std::move(rates));
  return std::make_shared<DeviceModel>(std::move(rates));
}

Step CostArguments::build(const StepArguments& arguments, const NetworkPtr& network, bool inference,
                          const StepChoice& choice) const {
  if (device.empty()) return arguments.build(network, inference, choice);
  if (!arguments.backend.empty()) throw Error("--device and --backend do not go together: give one of them");
  Step step = build_step(network, arguments.options(!inference, choice));
  annotate_for(step, find_device(device).rates());
  return step;
}

BudgetArguments CostArguments::resolve(BudgetArguments budget) const {
  if (budget.memory != "device") return budget;
  if (device.empty()) throw Error("--memory device needs a --device (see tide devices)");
  const Bytes all = find_device(device).memory();
  if (all.is_zero()) throw Error("the memory of {} is not known; give --memory a size", device);
  budget.memory = fmt::format("{}", all.count());
  return budget;
}

std::string CostArguments::source(const CostModel& model) const {
  return profile.empty() ? fmt::format("modelled ({})", model.name())
                         : fmt::format("measured ({}{})", profile, missing_text(model));
}

std::string missing_text(const CostModel& model) {
  const auto* const profile = dynamic_cast<const ProfileModel*>(&model);
  if (profile == nullptr || profile->missing() == 0) return "";
  return "; it lacks some of these tasks or was taken with another backend: those are modelled";
}

}  // namespace tide
