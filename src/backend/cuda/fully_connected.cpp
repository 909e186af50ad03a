#include "backend/cuda/fully_connected.h"

#include "backend/cuda/column_sums.h"
#include "backend/cuda/conversion.h"
#include "backend/cuda/direct_convolution.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/matrix_product.h"

namespace tide::cuda {
namespace {

// "gemm", "gemm-2", "gemm-3": their rank among the library's suggestions.
std::string algorithm_name(std::size_t rank) { return rank == 0 ? "gemm" : fmt::format("gemm-{}", rank + 1); }

// What a task does to x or dx, y or dy, and the weights. Positions are among its operands.
struct DenseTask {
  DenseTask(const TaskView& view, const DenseProblem& dense) : problem(dense) {
    if (view.is_forward()) {
      inputs = view.read(Role::x), outputs = view.written(Role::y), weights = view.read(Role::weight);
      bias = view.find_read(Role::bias);
    } else if (view.kind() == TaskKind::backward_data) {
      inputs = view.written(Role::dx), outputs = view.read(Role::dy), weights = view.read(Role::weight);
    } else {
      inputs = view.read(Role::x), outputs = view.read(Role::dy), weights = view.written(Role::d_weight);
      d_bias = view.find_written(Role::d_bias);
      add_weights = view.accumulates(weights);
      add_bias = d_bias && view.accumulates(*d_bias);
    }
    element = element_of(view, outputs);
  }

  DenseProblem problem;
  std::size_t inputs = 0, outputs = 0, weights = 0;
  std::optional<std::size_t> bias, d_bias;
  bool add_weights = false, add_bias = false;
  Element element = Element::f32;

  [[nodiscard]] RowsAndChannels rows() const { return {problem.rows, problem.outputs}; }
  [[nodiscard]] std::int64_t weight_count() const { return problem.inputs * problem.outputs; }
  [[nodiscard]] std::size_t bias_workspace() const { return d_bias ? column_sum_bytes(rows(), element) : 0; }
};

// What follows the product: the bias, forward (where the library has not added it) and backward.
void finish(const Context& context, const DenseTask& task, bool adds_bias, const Launch& launch) {
  if (adds_bias)
    check(launch_add_bias(context.stream(), task.element, launch.operands[task.outputs], input_of(launch, *task.bias),
                          task.problem.rows, task.problem.outputs),
          "adding a bias");
  if (task.d_bias)
    check(launch_column_sums(context.stream(), task.rows(), task.element, launch.operands[task.outputs],
                             output_of(launch, *task.d_bias), task.add_bias, launch.workspace),
          "the gradient of a bias");
}

Variant direct_variant(const TaskView& view, const ContextPtr& context, const DenseTask& task) {
  // A convolution of images of one position.
  const DirectConvolution shape{.batch = task.problem.rows,
                                .large_channels = static_cast<int>(task.problem.inputs),
                                .large_height = 1,
                                .large_width = 1,
                                .small_channels = static_cast<int>(task.problem.outputs),
                                .small_height = 1,
                                .small_width = 1,
                                .groups = 1,
                                .kernel_height = 1,
                                .kernel_width = 1,
                                .stride_height = 1,
                                .stride_width = 1,
                                .pad_top = 0,
                                .pad_left = 0,
                                .dilation_height = 1,
                                .dilation_width = 1};
  const bool forward = view.is_forward(), to_data = view.kind() == TaskKind::backward_data;
  const Kernel kernel = [=](const Launch& launch) {
    std::byte *inputs = launch.operands[task.inputs], *outputs = launch.operands[task.outputs];
    float* weights = output_of(launch, task.weights);
    const cudaStream_t stream = context->stream();
    check(forward   ? launch_direct_to_small(stream, shape, task.element, inputs, weights, outputs)
          : to_data ? launch_direct_to_large(stream, shape, task.element, outputs, weights, inputs)
                    : launch_direct_to_weights(stream, shape, task.element, inputs, outputs, weights, task.add_weights),
          "a matrix product");
    finish(*context, task, task.bias.has_value(), launch);
  };
  return {"direct", bytes(task.bias_workspace()), [kernel] { return kernel; }, true};
}

}  // namespace

// In column-major terms x is inputs x rows, y outputs x rows and W inputs x outputs.
Recipe dense_recipe(const TaskView& view, const ContextPtr& context, const DenseProblem& p) {
  const DenseTask task(view, p);
  const bool forward = view.is_forward(), to_data = view.kind() == TaskKind::backward_data;
  // The library's own bias has the type of its result; ours are floats.
  const bool own_bias = task.bias && task.element != Element::f32;
  MatrixProblem problem{p.outputs, p.rows,       p.inputs,    true, false, task.bias && !own_bias,
                        false,     task.element, task.element};
  if (to_data) problem = {p.inputs, p.rows, p.outputs, false, false, false, false, task.element, task.element};
  if (!forward && !to_data)
    problem = {p.inputs, p.outputs, p.rows, false, true, false, task.add_weights, task.element, Element::f32};
  // Weights in the type of the other factor, in front of the library's workspace.
  const bool converts = (forward || to_data) && task.element != Element::f32;
  const std::size_t copy =
      converts ? Bytes(task.weight_count() * static_cast<std::int64_t>(size_of(task.element))).aligned().size() : 0;
  Recipe recipe;
  for (const MatrixPlanPtr& plan : MatrixPlan::find(*context, problem)) {
    // The sums of the bias use the workspace behind the product.
    const std::size_t workspace = std::max(copy + plan->workspace(), task.bias_workspace());
    const Kernel kernel = [=](const Launch& launch) {
      std::byte *inputs = launch.operands[task.inputs], *outputs = launch.operands[task.outputs],
                *weights = launch.operands[task.weights];
      if (converts) {
        check(launch_convert(context->stream(), input_of(launch, task.weights), task.element, launch.workspace,
                             task.weight_count()),
              "converting weights");
        weights = launch.workspace;
      }
      std::byte* scratch = launch.workspace + copy;
      if (forward)
        plan->run(*context, weights, inputs, outputs, problem.bias ? input_of(launch, *task.bias) : nullptr, scratch);
      else if (to_data)
        plan->run(*context, weights, outputs, inputs, nullptr, scratch);
      else
        plan->run(*context, inputs, outputs, weights, nullptr, scratch);
      finish(*context, task, own_bias, launch);
    };
    recipe.push_back({algorithm_name(recipe.size()), bytes(workspace), [kernel] { return kernel; }});
  }
  return recipe;
}

Recipe fully_connected_recipe(const TaskView& view, const ContextPtr& context) {
  const DenseProblem problem{view.samples(), view.input().per_sample(), view.output().channels()};
  Recipe recipe = dense_recipe(view, context, problem);
  if (recipe.empty()) recipe.push_back(direct_variant(view, context, DenseTask(view, problem)));
  return recipe;
}

}  // namespace tide::cuda
