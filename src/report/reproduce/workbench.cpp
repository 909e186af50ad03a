#include "report/reproduce/workbench.h"

#include <algorithm>
#include <array>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/timeline.h"
#include "planner/policy.h"
#include "report/fit.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide::reproduce {
namespace {

// Convolutions keep the algorithms with workspaces up to the limit, and the one with the least.
void limit_workspaces(Step& step, Bytes limit) {
  for (auto& set : step.algorithm_sets) {
    const Bytes least = std::min_element(set.begin(), set.end(), [](const Algorithm& a, const Algorithm& b) {
                          return a.workspace < b.workspace;
                        })->workspace;
    std::erase_if(set, [&](const Algorithm& algorithm) { return algorithm.workspace > std::max(limit, least); });
  }
}

}  // namespace

std::span<const PaperNetwork> paper_networks() {
  static constexpr std::array<PaperNetwork, 6> kNetworks{{{"AlexNet", "alexnet"},
                                                          {"VGG16", "vgg16"},
                                                          {"InceptionV4", "inception-v4"},
                                                          {"ResNet50", "superneurons/resnet50"},
                                                          {"ResNet101", "superneurons/resnet101"},
                                                          {"ResNet152", "superneurons/resnet152"}}};
  return kNetworks;
}

NetworkPtr Workbench::network(std::string_view model) {
  const auto known = networks_.find(model);
  if (known != networks_.end()) return known->second;
  return networks_[std::string(model)] = std::make_shared<const Network>(make_model(model));
}

Step Workbench::step(const Setting& setting) {
  StepOptions options;
  options.batch = setting.batch;
  options.rules = setting.rules;
  options.part = setting.part;
  options.ranks = setting.ranks;
  Step step = build_step(network(setting.model), options);
  annotate_for(step, find_device(setting.device).rates());
  if (!setting.workspaces) limit_workspaces(step, Bytes());
  if (setting.largest_workspace) limit_workspaces(step, *setting.largest_workspace);
  return step;
}

Planned Workbench::plan(const Setting& setting) {
  const DeviceModel cost(find_device(setting.device).rates());
  Planned outcome;
  PlanningContext options = setting.options;
  if (allowed_by(options.batch) != Numerics::identical)
    options.cut = [&](std::int64_t samples, Part part) {
      Setting cut = setting;
      cut.batch = samples;
      cut.part = part;
      return step(cut);
    };
  outcome.result = make_plan(find_policy(setting.policy), step(setting), cost, options);
  if (!outcome.fits()) return outcome;
  outcome.summary = summarize(*outcome.result.plan);
  outcome.seconds = *outcome.result.seconds;
  return outcome;
}

std::int64_t Workbench::largest_batch(Setting setting) {
  const DeviceModel cost(find_device(setting.device).rates());
  const auto build = [&](std::int64_t batch) {
    setting.batch = batch;
    return step(setting);
  };
  return largest_fit(fit_of_steps(build, find_policy(setting.policy), cost, setting.options)).size;
}

}  // namespace tide::reproduce
