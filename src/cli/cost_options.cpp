#include "cli/cost_options.h"

#include <cstdio>

#include "cli/link_rate.h"
#include "cost/devices.h"

namespace tide {
namespace {

constexpr const char* kProfileText =
    "Plan with the measured times of this file (see tide profile); auto: measured now where no earlier run did (the "
    "default of cuda); none: modelled";

// Planning does not need the device itself.
std::unique_ptr<Backend> make_backend_of(const StepArguments& step) {
  try {
    return step.make();
  } catch (const Error& error) {
    if (step.backend_name() != "cuda") throw;
    throw Error("{}; to plan without one, name it by --device instead of --backend (see tide devices)", error.what());
  }
}

std::unique_ptr<Target> device_target(const CostArguments& arguments) {
  const DeviceSheet& sheet = find_device(arguments.device);
  if (arguments.link == "pageable") return std::make_unique<Target>(sheet, sheet.pageable_link());
  return std::make_unique<Target>(sheet, arguments.link_bytes_per_second());
}

std::unique_ptr<Target> backend_target(const CostArguments& arguments, std::unique_ptr<Backend> backend) {
  auto target =
      std::make_unique<Target>(std::move(backend), CostRequest{arguments.profile, arguments.link_bytes_per_second()});
  if (!target->warning().empty()) fmt::print(stderr, "tide: {}\n", target->warning());
  return target;
}

}  // namespace

void CostArguments::add_to(CLI::App& app) {
  app.add_option("--device", device,
                 "Plan for this device instead of the backend (see tide devices); --memory device: all it has");
  app.add_option("--profile", profile, kProfileText);
  app.add_option("--link", link, "Rate of copies to host memory each way, such as 8GB/s; pageable: half the device's");
}

void CostArguments::add_running_to(CLI::App& app) {
  app.add_option("--profile", profile, kProfileText);
  app.add_option("--link", link,
                 "Slow down copies between device and host memory to this speed, such as 2GB/s, each way: shows on a "
                 "processor how a plan does behind a slower link, such as a graphics card's");
}

std::unique_ptr<Target> CostArguments::target(const StepArguments& step) const {
  if (!device.empty() && !profile.empty()) throw Error("--device and --profile do not go together: give one of them");
  if (!device.empty() && !step.backend.empty())
    throw Error("--device and --backend do not go together: give one of them");
  if (!device.empty()) return device_target(*this);
  if (link == "pageable") throw Error("--link pageable needs a --device whose link it halves");
  return backend_target(*this, make_backend_of(step));
}

std::unique_ptr<Target> CostArguments::running_target(const StepArguments& step) const {
  return backend_target(*this, step.make());
}

double CostArguments::link_bytes_per_second() const { return link.empty() ? 0 : parse_link_rate(link); }

}  // namespace tide
