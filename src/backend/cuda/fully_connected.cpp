#include "backend/cuda/fully_connected.h"

#include "backend/cuda/column_sums.h"
#include "backend/cuda/matrix_product.h"

namespace tide::cuda {
namespace {

// "gemm", "gemm-2", "gemm-3": their rank among the library's suggestions.
std::string algorithm_name(std::size_t rank) { return rank == 0 ? "gemm" : fmt::format("gemm-{}", rank + 1); }

}  // namespace

// In column-major terms x is inputs x rows, y outputs x rows and W inputs x outputs.
Recipe dense_recipe(const TaskView& view, const ContextPtr& context, const DenseProblem& p) {
  const bool forward = view.is_forward();
  const auto bias = forward ? view.find_read(Role::bias) : std::nullopt;
  MatrixProblem problem{};
  std::size_t a = 0, b = 0, c = 0;
  std::optional<std::size_t> d_bias;
  if (forward) {
    problem = {p.outputs, p.rows, p.inputs, true, false, bias.has_value(), false};
    a = view.read(Role::weight), b = view.read(Role::x), c = view.written(Role::y);
  } else if (view.kind() == TaskKind::backward_data) {
    problem = {p.inputs, p.rows, p.outputs, false, false, false, false};
    a = view.read(Role::weight), b = view.read(Role::dy), c = view.written(Role::dx);
  } else {
    c = view.written(Role::d_weight);
    problem = {p.inputs, p.outputs, p.rows, false, true, false, view.accumulates(c)};
    a = view.read(Role::x), b = view.read(Role::dy);
    d_bias = view.find_written(Role::d_bias);
  }
  const bool add_bias = d_bias && view.accumulates(*d_bias);
  const RowsAndChannels dy{p.rows, p.outputs};
  const Element element = element_of(view, b);
  Recipe recipe;
  for (const MatrixPlanPtr& plan : MatrixPlan::find(*context, problem)) {
    // The sums of the bias use the workspace behind the product.
    const std::size_t workspace = std::max(plan->workspace(), d_bias ? column_sum_bytes(dy, element) : 0);
    const Kernel kernel = [=](const Launch& launch) {
      plan->run(*context, input_of(launch, a), input_of(launch, b), output_of(launch, c),
                bias ? input_of(launch, *bias) : nullptr, launch.workspace);
      if (d_bias)
        check(launch_column_sums(context->stream(), dy, element, input_of(launch, b), output_of(launch, *d_bias),
                                 add_bias, launch.workspace),
              "the gradient of a bias");
    };
    recipe.push_back({algorithm_name(recipe.size()), bytes(workspace), [kernel] { return kernel; }});
  }
  return recipe;
}

Recipe fully_connected_recipe(const TaskView& view, const ContextPtr& context) {
  return dense_recipe(view, context, {view.step().options.batch, view.input().per_sample(), view.output().channels});
}

}  // namespace tide::cuda
