#include "report/reproduce/workbench.h"

#include <algorithm>
#include <array>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "plan/timeline.h"
#include "report/fit.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide::reproduce {
namespace {

// Convolutions keep the algorithm with the least workspace.
void forbid_workspaces(Step& step) {
  for (auto& set : step.algorithm_sets) {
    const auto least = std::min_element(
        set.begin(), set.end(), [](const Algorithm& a, const Algorithm& b) { return a.workspace < b.workspace; });
    set = {*least};
  }
}

}  // namespace

std::span<const PaperNetwork> paper_networks() {
  static constexpr std::array<PaperNetwork, 6> networks{{{"AlexNet", "alexnet"},
                                                         {"VGG16", "vgg16"},
                                                         {"InceptionV4", "inception-v4"},
                                                         {"ResNet50", "superneurons/resnet50"},
                                                         {"ResNet101", "superneurons/resnet101"},
                                                         {"ResNet152", "superneurons/resnet152"}}};
  return networks;
}

NetworkPtr Workbench::network(std::string_view model) {
  const auto known = networks_.find(model);
  if (known != networks_.end()) return known->second;
  return networks_[std::string(model)] = std::make_shared<const Network>(make_model(model));
}

Step Workbench::step(const Setting& setting) {
  Step step = build_step(network(setting.model),
                         {.batch = setting.batch, .rules = setting.rules, .training = true, .optimizer = {}});
  annotate_for(step, find_device(setting.device).rates());
  if (!setting.workspaces) forbid_workspaces(step);
  return step;
}

Planned Workbench::plan(const Setting& setting) {
  const DeviceModel cost(find_device(setting.device).rates());
  Planned outcome;
  outcome.result = make_plan(find_policy(setting.policy), step(setting), cost, setting.options);
  if (!outcome.fits()) return outcome;
  outcome.summary = summarize(*outcome.result.plan);
  outcome.seconds = simulate(*outcome.result.plan, cost).seconds;
  return outcome;
}

std::int64_t Workbench::largest_batch(Setting setting) {
  const DeviceModel cost(find_device(setting.device).rates());
  FitProblem problem{{}, &find_policy(setting.policy), &cost, setting.options};
  problem.build = [&](std::int64_t batch) {
    setting.batch = batch;
    return step(setting);
  };
  return largest_fit(problem).size;
}

}  // namespace tide::reproduce
