#include "cost/device_model.h"

#include <algorithm>
#include <map>

#include "cost/convolution.h"
#include "cost/work.h"

namespace tide {
namespace {

double scalar_rate(const Device& device) {
  return device.fp32_flops_per_second > 0 ? device.fp32_flops_per_second : device.flops_per_second;
}

double convolution_seconds(const Device& device, const ConvolutionWork& work) {
  const double rate = work.matrix_units ? device.flops_per_second
                      : work.winograd   ? scalar_rate(device) * device.winograd_share
                                        : scalar_rate(device);
  const double product = std::max(work.product_flops / (rate * work.product_efficiency),
                                  work.product_bytes / device.memory_bytes_per_second);
  const double transforms =
      std::max(work.transform_flops / scalar_rate(device), work.transform_bytes / device.memory_bytes_per_second);
  return product + transforms + work.launches * device.launch_seconds;
}

// How often a kernel goes over its operands: statistics come before what uses them, and
// LRN reads its neighbours' channels.
double passes(LayerKind layer, TaskKind task) {
  if (layer == LayerKind::batch_norm && task == TaskKind::forward) return 3.0 / 2;   // x twice, y
  if (layer == LayerKind::batch_norm && task == TaskKind::backward) return 5.0 / 3;  // x and dy twice, dx
  if (layer == LayerKind::lrn) return 2;
  return 1;
}

double product_share(const Step& step, const Task& task) {
  const Layer* layer = step.network ? &step.network->layer(task.layer) : nullptr;
  if (layer == nullptr) return 0.8;
  const auto batch = static_cast<double>(step.options.batch);
  const auto in = static_cast<double>(step.network->shape(layer->inputs[0]).per_sample());
  const auto out = static_cast<double>(layer->outputs[0].per_sample());
  return product_utilization(in, out, batch);
}

}  // namespace

double DeviceModel::task_seconds(const Step& step, TaskId id, std::size_t algorithm) const {
  if (const std::optional<ConvolutionProblem> problem = convolution_of(step, id)) {
    const auto family =
        family_from_name(step.algorithms_of(id)[algorithm].name).value_or(ConvolutionFamily::precomp_gemm);
    return convolution_seconds(device_, work_of(family, *problem));
  }
  const Task& task = step.task(id);
  const Work work = work_of(step, id);
  const bool product = step.layer_kind(task) == LayerKind::fully_connected && task.kind != TaskKind::update &&
                       task.kind != TaskKind::norm && task.kind != TaskKind::sum_gradients;
  const double rate = product ? device_.flops_per_second * product_share(step, task) : scalar_rate(device_);
  return std::max(work.flops / rate,
                  work.bytes * passes(step.layer_kind(task), task.kind) / device_.memory_bytes_per_second) +
         device_.launch_seconds;
}

double DeviceModel::copy_seconds(Bytes bytes, Tier from, Tier to) const {
  return RooflineModel(device_).copy_seconds(bytes, from, to);
}

void annotate_for(Step& step, const Device& device) {
  step.backend = "model " + device.name;
  step.algorithm_sets.resize(1);
  std::map<ConvolutionProblem, std::uint32_t> known;
  std::map<std::vector<std::pair<ConvolutionFamily, Bytes>>, std::uint32_t> sets;
  for (std::size_t t = 0; t < step.tasks.size(); ++t) {
    step.tasks[t].algorithms = 0;
    const std::optional<ConvolutionProblem> problem = convolution_of(step, TaskId(t));
    if (!problem) continue;
    const auto [seen, first_time] = known.try_emplace(*problem, 0);
    if (first_time) {
      std::vector<std::pair<double, std::pair<ConvolutionFamily, Bytes>>> ways;
      for (const ConvolutionFamily family : kConvolutionFamilies) {
        if (!applies(family, *problem)) continue;
        const ConvolutionWork work = work_of(family, *problem);
        ways.push_back({convolution_seconds(device, work), {family, work.workspace}});
      }
      std::stable_sort(ways.begin(), ways.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      std::vector<std::pair<ConvolutionFamily, Bytes>> set;
      for (const auto& [seconds, way] : ways) set.push_back(way);
      const auto [entry, new_set] = sets.try_emplace(set, static_cast<std::uint32_t>(step.algorithm_sets.size()));
      if (new_set) {
        auto& algorithms = step.algorithm_sets.emplace_back();
        for (const auto& [family, workspace] : set) algorithms.push_back({std::string(family_name(family)), workspace});
      }
      seen->second = entry->second;
    }
    step.tasks[t].algorithms = seen->second;
  }
}

}  // namespace tide
