#include "cost/device_model.h"

#include <algorithm>
#include <map>

#include "cost/convolution.h"
#include "cost/work.h"
#include "network/kind.h"

namespace tide {
namespace {

double scalar_rate(const Device& device) {
  return device.fp32_flops_per_second > 0 ? device.fp32_flops_per_second : device.flops_per_second;
}

// Of products of a step's activations.
double matrix_rate(const Device& device, const Step& step) {
  const bool half = step.options.activations == DataType::bf16 && device.bf16_flops_per_second > 0;
  return half ? device.bf16_flops_per_second : device.flops_per_second;
}

double convolution_seconds(const Device& device, double matrix_rate, const ConvolutionWork& work) {
  const double rate = work.matrix_units ? matrix_rate
                      : work.winograd   ? scalar_rate(device) * device.winograd_share
                                        : scalar_rate(device);
  const double product = std::max(work.product_flops / (rate * work.product_efficiency),
                                  work.product_bytes / device.memory_bytes_per_second);
  const double transforms =
      std::max(work.transform_flops / scalar_rate(device), work.transform_bytes / device.memory_bytes_per_second);
  return product + transforms + work.launches * device.launch_seconds;
}

// How often a kernel goes over its operands. A replay has the statistics already.
double passes(const Step& step, const Task& task) {
  const Passes kind = description_of(step.layer_kind(task)).passes;
  if (kind == Passes::two) return 2;
  const bool forward = task.kind == TaskKind::forward, backward = task.kind == TaskKind::backward;
  if (kind == Passes::one || (!forward && !backward)) return 1;
  double large = 0, gradients = 0, results = 0;
  for (const Operand& operand : step.operands_of(task)) {
    if (operand.role == Role::dy) ++gradients;
    if (operand.role == Role::dx) ++results;
    if (operand.role == Role::x || operand.role == Role::y || operand.role == Role::dy || operand.role == Role::dx)
      ++large;
  }
  if (large == 0) return 1;                                 // statistics of parts that are put together
  if (forward) return (large + 1) / large;                  // x twice
  if (results < 2) return (large + gradients + 1) / large;  // x and the gradients twice
  return (large + 2) / large;                               // x and the second input's gradient twice
}

double product_share(const Step& step, const Task& task) {
  const Layer* layer = step.network ? &step.network->layer(task.layer) : nullptr;
  if (layer == nullptr) return 0.8;
  const auto batch = static_cast<double>(samples_of(step, task));
  const auto in = static_cast<double>(step.network->shape(layer->inputs[0]).per_sample());
  const auto out = static_cast<double>(layer->outputs[0].per_sample());
  return product_utilization(in, out, batch);
}

}  // namespace

double DeviceModel::task_seconds(const Step& step, TaskId id, std::size_t algorithm) const {
  if (is_collective(step.task(id).kind)) return collective_seconds(device_, step, id);
  if (const std::optional<ConvolutionProblem> problem = convolution_of(step, id)) {
    const auto family =
        family_from_name(step.algorithms_of(id)[algorithm].name).value_or(ConvolutionFamily::precomp_gemm);
    return convolution_seconds(device_, matrix_rate(device_, step), work_of(family, *problem));
  }
  const Task& task = step.task(id);
  const Work work = work_of(step, id);
  const bool product = description_of(step.layer_kind(task)).product == Product::matrix && is_of_layer(task.kind);
  const double rate = product ? matrix_rate(device_, step) * product_share(step, task) : scalar_rate(device_);
  return std::max(work.flops / rate, work.bytes * passes(step, task) / device_.memory_bytes_per_second) +
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
        ways.push_back({convolution_seconds(device, matrix_rate(device, step), work), {family, work.workspace}});
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
