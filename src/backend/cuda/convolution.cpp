// Convolutions, transposed too: cuDNN's algorithms, matrix products where a window is one
// position, and plain sums where nothing else does without workspace.
#include <algorithm>

#include "backend/cuda/column_sums.h"
#include "backend/cuda/cudnn_convolution.h"
#include "backend/cuda/direct_convolution.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/fully_connected.h"
#include "backend/cuda/recipe.h"

namespace tide::cuda {
namespace {

// What a task does to the three tensors of a convolution. Positions are among its operands.
struct ConvolutionTask {
  ConvolutionProblem problem;
  std::size_t large = 0, small = 0, weights = 0;
  Shape output;  // of the layer: rows of y and dy
  std::optional<std::size_t> bias, d_bias;
  std::size_t y_or_dy = 0;
  bool add_weights = false, add_bias = false;

  [[nodiscard]] RowsAndChannels rows() const {
    return {output.batch * output.height * output.width, output.channels};
  }
  [[nodiscard]] std::size_t weight_bytes() const {
    const Window& w = problem.window;
    return static_cast<std::size_t>(problem.small.channels * w.kernel_height * w.kernel_width *
                                    (problem.large.channels / problem.groups)) *
           sizeof(float);
  }
  [[nodiscard]] std::int64_t operand_bytes() const {
    return (problem.large.elements() + problem.small.elements()) * 4 + static_cast<std::int64_t>(weight_bytes());
  }
};

ConvolutionTask task_of(const TaskView& view) {
  const auto& options = view.options<ConvolutionOptions>();
  const bool transposed = view.layer_kind() == LayerKind::transposed_convolution;
  ConvolutionTask task;
  task.output = view.output();
  task.problem.window = options.window;
  task.problem.groups = options.groups;
  task.problem.large = transposed ? view.output() : view.input();
  task.problem.small = transposed ? view.input() : view.output();
  std::size_t of_input = 0, of_output = 0;
  if (view.is_forward()) {
    of_input = view.read(Role::x), of_output = view.written(Role::y), task.weights = view.read(Role::weight);
    task.problem.product = transposed ? Product::to_large : Product::to_small;
    task.bias = view.find_read(Role::bias);
  } else if (view.kind() == TaskKind::backward_data) {
    of_input = view.written(Role::dx), of_output = view.read(Role::dy), task.weights = view.read(Role::weight);
    task.problem.product = transposed ? Product::to_small : Product::to_large;
  } else {
    of_input = view.read(Role::x), of_output = view.read(Role::dy), task.weights = view.written(Role::d_weight);
    task.problem.product = Product::to_weights;
    task.d_bias = view.find_written(Role::d_bias);
    task.add_weights = view.accumulates(task.weights);
    task.add_bias = task.d_bias && view.accumulates(*task.d_bias);
  }
  task.large = transposed ? of_output : of_input;
  task.small = transposed ? of_input : of_output;
  task.y_or_dy = of_output;
  return task;
}

// What follows the sums of products: the bias, forward and backward. Scratch is free again by then.
void finish(const Context& context, const ConvolutionTask& task, const Launch& launch) {
  if (task.bias)
    check(launch_add_bias(context.stream(), output_of(launch, task.y_or_dy), input_of(launch, *task.bias),
                          task.rows().rows, task.rows().channels),
          "adding a bias");
  if (task.d_bias)
    check(launch_column_sums(context.stream(), task.rows(), input_of(launch, task.y_or_dy),
                             output_of(launch, *task.d_bias), task.add_bias, launch.workspace),
          "the gradient of a bias");
}

std::size_t bias_workspace(const ConvolutionTask& task) { return task.d_bias ? column_sum_bytes(task.rows()) : 0; }

// cuDNN overwrites: gradients that are added to go through the workspace, in front of its own.
Variant library_variant(const ContextPtr& context, const ConvolutionTask& task, const ConvolutionPlanPtr& plan) {
  const std::size_t copy = task.add_weights ? Bytes(static_cast<std::int64_t>(task.weight_bytes())).aligned().size() : 0;
  const std::size_t workspace = std::max(copy + plan->workspace(), bias_workspace(task));
  return {plan->name(), bytes(workspace), [=] {
            const auto call = std::make_shared<ConvolutionCall>(plan);
            return [=](const Launch& launch) {
              void* weights = task.add_weights ? launch.workspace : launch.operands[task.weights];
              call->run(*context, launch.operands[task.large], launch.operands[task.small], weights,
                        plan->workspace() > 0 ? launch.workspace + copy : nullptr);
              if (task.add_weights) {
                float* sum = output_of(launch, task.weights);
                check(launch_binary(context->stream(), Binary::add, sum, static_cast<const float*>(weights), sum,
                                    static_cast<std::int64_t>(task.weight_bytes() / sizeof(float))),
                      "adding to a gradient");
              }
              finish(*context, task, launch);
            };
          }};
}

Variant direct_variant(const ContextPtr& context, const ConvolutionTask& task) {
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  const ConvolutionProblem& p = task.problem;
  const Window& w = p.window;
  const DirectConvolution shape{p.large.batch,
                                narrow(p.large.channels),
                                narrow(p.large.height),
                                narrow(p.large.width),
                                narrow(p.small.channels),
                                narrow(p.small.height),
                                narrow(p.small.width),
                                narrow(p.groups),
                                narrow(w.kernel_height),
                                narrow(w.kernel_width),
                                narrow(w.stride_height),
                                narrow(w.stride_width),
                                narrow(w.pad_top),
                                narrow(w.pad_left),
                                narrow(w.dilation_height),
                                narrow(w.dilation_width)};
  const Kernel kernel = [=](const Launch& launch) {
    float *large = output_of(launch, task.large), *small = output_of(launch, task.small),
          *weights = output_of(launch, task.weights);
    const cudaStream_t stream = context->stream();
    check(p.product == Product::to_small   ? launch_direct_to_small(stream, shape, large, weights, small)
          : p.product == Product::to_large ? launch_direct_to_large(stream, shape, small, weights, large)
                                           : launch_direct_to_weights(stream, shape, large, small, weights, task.add_weights),
          "a convolution");
    finish(*context, task, launch);
  };
  return {"direct", bytes(bias_workspace(task)), [kernel] { return kernel; }};
}

}  // namespace

Recipe convolution_recipe(const TaskView& view, const ContextPtr& context) {
  const ConvolutionTask task = task_of(view);
  Recipe recipe;
  for (const ConvolutionPlanPtr& plan : ConvolutionPlan::find(*context, task.problem))
    recipe.push_back(library_variant(context, task, plan));
  const bool is_product = view.layer_kind() == LayerKind::convolution && task.problem.groups == 1 &&
                          task.problem.window == Window::square(1);
  if (is_product)
    for (Variant& variant : dense_recipe(view, context, {task.rows().rows, task.problem.large.channels, task.output.channels}))
      recipe.push_back(std::move(variant));
  // No budget should fail for want of scratch; a quarter of the operands is no want.
  const Bytes little = bytes(bias_workspace(task)) + Bytes(task.operand_bytes() / 4);
  const bool frugal = std::any_of(recipe.begin(), recipe.end(), [&](const Variant& v) { return v.workspace <= little; });
  if (!frugal) recipe.push_back(direct_variant(context, task));
  return recipe;
}

}  // namespace tide::cuda
