// Convolutions, transposed too: cuDNN's algorithms, matrix products where a window is one
// position, kernels of our own for depthwise ones, and plain sums where nothing else does without
// workspace.
#include <algorithm>

#include "backend/cuda/column_sums.h"
#include "backend/cuda/conversion.h"
#include "backend/cuda/cudnn_convolution.h"
#include "backend/cuda/depthwise_convolution.h"
#include "backend/cuda/direct_convolution.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/fold.h"
#include "backend/cuda/fully_connected.h"
#include "backend/cuda/recipe.h"

namespace tide::cuda {
namespace {

// What a task does to the three tensors of a convolution. Positions are among its operands.
struct ConvolutionTask {
  ConvolutionProblem problem;
  std::size_t large = 0, small = 0, weights = 0;
  Shape output;  // of the layer: rows of y and dy
  Element element = Element::f32;
  std::optional<std::size_t> bias, d_bias;
  std::size_t y_or_dy = 0;
  bool add_weights = false, add_bias = false;

  [[nodiscard]] RowsAndChannels rows() const {
    return {output.batch() * output.height() * output.width(), output.channels()};
  }
  [[nodiscard]] std::int64_t weight_count() const {
    const Window& w = problem.window;
    return problem.small.channels() * w.kernel_height * w.kernel_width * (problem.large.channels() / problem.groups);
  }
  [[nodiscard]] std::int64_t operand_bytes() const {
    const auto size = static_cast<std::int64_t>(size_of(element));
    return (problem.large.elements() + problem.small.elements()) * size + weight_count() * 4;
  }
};

std::size_t aligned_bytes(std::int64_t count, Element element) {
  return Bytes(count * static_cast<std::int64_t>(size_of(element))).aligned().size();
}

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
  task.element = task.problem.element = element_of(view, of_output);
  return task;
}

// What follows the sums of products: the bias, forward and backward. Scratch is free again by then.
void finish(const Context& context, const ConvolutionTask& task, const Launch& launch, bool has_bias = false) {
  if (task.bias && !has_bias)
    check(launch_add_bias(context.stream(), task.element, launch.operands[task.y_or_dy], input_of(launch, *task.bias),
                          task.rows().rows, task.rows().channels),
          "adding a bias");
  if (task.d_bias)
    check(launch_column_sums(context.stream(), task.rows(), task.element, launch.operands[task.y_or_dy],
                             output_of(launch, *task.d_bias), task.add_bias, launch.workspace),
          "the gradient of a bias");
}

std::size_t bias_workspace(const ConvolutionTask& task) {
  return task.d_bias ? column_sum_bytes(task.rows(), task.element) : 0;
}

// The problem as the library is asked for it: with a bias if it has that, which spares a pass over y;
// with weights in the type of the sides, but their gradients as floats if it has that.
std::vector<ConvolutionProblem> library_problems(const ConvolutionProblem& given, bool bias) {
  ConvolutionProblem problem = given;
  std::vector<ConvolutionProblem> problems;
  if (given.product == Product::to_weights) problems.push_back(problem);
  problem.weights = given.element;
  problem.bias = bias && given.product == Product::to_small;
  if (problem.bias) problems.push_back(problem);
  problem.bias = false;
  if (given.product != Product::to_weights || given.element != Element::f32) problems.push_back(problem);
  return problems;
}

std::string variant_name(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  const bool rounds = problem.product == Product::to_weights && problem.weights != Element::f32;
  return plan.name() + (rounds ? "-rounded" : problem.bias ? "-bias" : "");
}

// Weights of another type, and gradients that are added to (cuDNN overwrites), go through the
// workspace, in front of its own.
Variant library_variant(const ContextPtr& context, const ConvolutionTask& task, const ConvolutionProblem& problem,
                        const ConvolutionPlanPtr& plan) {
  const bool aside = task.add_weights || problem.weights != Element::f32;
  const std::size_t copy = aside ? aligned_bytes(task.weight_count(), problem.weights) : 0;
  const std::size_t workspace = std::max(copy + plan->workspace(), bias_workspace(task));
  return {variant_name(problem, *plan), bytes(workspace), [=] {
            const auto call = std::make_shared<ConvolutionCall>(plan);
            return [=](const Launch& launch) {
              void* weights = aside ? launch.workspace : launch.operands[task.weights];
              const bool to_weights = problem.product == Product::to_weights;
              if (aside && !to_weights)
                check(launch_convert(context->stream(), input_of(launch, task.weights), problem.weights, weights,
                                     task.weight_count()),
                      "converting weights");
              call->run(*context, launch.operands[task.large], launch.operands[task.small], weights,
                        problem.bias ? launch.operands[*task.bias] : nullptr,
                        plan->workspace() > 0 ? launch.workspace + copy : nullptr);
              if (aside && to_weights)
                check(launch_to_floats(context->stream(), problem.weights, weights, output_of(launch, task.weights),
                                       task.add_weights, task.weight_count()),
                      "converting a gradient");
              finish(*context, task, launch, problem.bias);
            };
          }};
}

// The folded image and window of a convolution, and the convolution of these.
struct FoldedConvolution {
  Fold image, window;
  ConvolutionProblem problem;

  static std::size_t bytes_of(const Fold& f, Element element) {
    return aligned_bytes(f.batch * f.folded_height * f.folded_width * f.folded_channels, element);
  }
};

// Nothing where there is no need: for more channels, a stride of 1, or the gradient of the image.
std::optional<FoldedConvolution> folded(const ConvolutionProblem& p) {
  constexpr std::int64_t kMostChannels = 4, kChannelsOfUnits = 8;
  const Window& w = p.window;
  if (p.large.channels() > kMostChannels || p.groups != 1 || p.product == Product::to_large) return std::nullopt;
  if (w.dilation_height != 1 || w.dilation_width != 1 || w.stride_height * w.stride_width == 1) return std::nullopt;
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  // Zeros in front of the window, so that it starts where a fold does.
  const auto shift = [](std::int64_t pad, std::int64_t stride) { return (stride - pad % stride) % stride; };
  const auto folds = [](std::int64_t kernel, std::int64_t stride) { return (kernel + stride - 1) / stride; };
  const std::int64_t down = shift(w.pad_top, w.stride_height), right = shift(w.pad_left, w.stride_width);
  const std::int64_t height = folds(w.kernel_height + down, w.stride_height);
  const std::int64_t width = folds(w.kernel_width + right, w.stride_width);
  const std::int64_t channels =
      folds(w.stride_height * w.stride_width * p.large.channels(), kChannelsOfUnits) * kChannelsOfUnits;
  FoldedConvolution f;
  f.problem = p;
  f.problem.window = Window::rectangle(height, width, 0, 0);
  f.problem.large = {p.large.batch(), channels, p.small.height() + height - 1, p.small.width() + width - 1};
  f.window = {p.small.channels(),      narrow(w.kernel_height), narrow(w.kernel_width), narrow(p.large.channels()),
              narrow(w.stride_height), narrow(w.stride_width),  narrow(down),           narrow(right),
              narrow(height),          narrow(width),           narrow(channels)};
  f.image = f.window;
  f.image.batch = p.large.batch();
  f.image.height = narrow(p.large.height());
  f.image.width = narrow(p.large.width());
  f.image.before_height = narrow(w.pad_top + down);
  f.image.before_width = narrow(w.pad_left + right);
  f.image.folded_height = narrow(f.problem.large.height());
  f.image.folded_width = narrow(f.problem.large.width());
  return f;
}

// As seen on an H200: with windows of 7x7 and 11x11 forward, with a stride of 4 backward too, and
// in bf16 backward with any.
bool folds_are_faster(const ConvolutionProblem& p) {
  const Window& w = p.window;
  if (p.element == Element::bf16 && p.product == Product::to_weights) return true;
  return w.kernel_height * w.kernel_width >= 25 &&
         (p.product == Product::to_small || w.stride_height * w.stride_width >= 16);
}

Variant folded_variant(const ContextPtr& context, const ConvolutionTask& task, const FoldedConvolution& f,
                       const ConvolutionPlanPtr& plan) {
  const Element of_window = f.problem.weights;
  const std::size_t image_bytes = FoldedConvolution::bytes_of(f.image, task.element);
  const std::size_t before = image_bytes + FoldedConvolution::bytes_of(f.window, of_window);
  const bool forward = f.problem.product == Product::to_small;
  return {"folded-" + variant_name(f.problem, *plan), bytes(std::max(before + plan->workspace(), bias_workspace(task))),
          [=] {
            const auto call = std::make_shared<ConvolutionCall>(plan);
            return [=](const Launch& launch) {
              const cudaStream_t stream = context->stream();
              std::byte *image = launch.workspace, *window = launch.workspace + image_bytes;
              check(launch_fold(stream, f.image, task.element, launch.operands[task.large], image), "folding an image");
              if (forward)
                check(launch_fold_window(stream, f.window, input_of(launch, task.weights), of_window, window),
                      "folding a window");
              call->run(*context, image, launch.operands[task.small], window,
                        f.problem.bias ? launch.operands[*task.bias] : nullptr,
                        plan->workspace() > 0 ? launch.workspace + before : nullptr);
              if (!forward)
                check(launch_unfold_window(stream, f.window, of_window, window, output_of(launch, task.weights),
                                           task.add_weights),
                      "unfolding a window");
              finish(*context, task, launch, f.problem.bias);
            };
          }};
}

DirectConvolution plain_shape(const ConvolutionProblem& p) {
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  const Window& w = p.window;
  return {p.large.batch(),         narrow(p.large.channels()), narrow(p.large.height()),
          narrow(p.large.width()), narrow(p.small.channels()), narrow(p.small.height()),
          narrow(p.small.width()), narrow(p.groups),           narrow(w.kernel_height),
          narrow(w.kernel_width),  narrow(w.stride_height),    narrow(w.stride_width),
          narrow(w.pad_top),       narrow(w.pad_left),         narrow(w.dilation_height),
          narrow(w.dilation_width)};
}

// Nothing where the kernels do not take the shape.
std::optional<Variant> depthwise_variant(const ContextPtr& context, const ConvolutionTask& task) {
  const ConvolutionProblem& p = task.problem;
  const DirectConvolution shape = plain_shape(p);
  if (!is_fast_depthwise(shape, task.element)) return std::nullopt;
  const std::size_t own = p.product == Product::to_weights ? depthwise_weights_bytes(shape, task.element) : 0;
  const Kernel kernel = [=](const Launch& launch) {
    std::byte *large = launch.operands[task.large], *small = launch.operands[task.small];
    float* weights = output_of(launch, task.weights);
    const cudaStream_t stream = context->stream();
    check(p.product == Product::to_small ? launch_depthwise_to_small(stream, shape, task.element, large, weights, small)
          : p.product == Product::to_large
              ? launch_depthwise_to_large(stream, shape, task.element, small, weights, large)
              : launch_depthwise_to_weights(stream, shape, task.element, large, small, weights, task.add_weights,
                                            launch.workspace),
          "a depthwise convolution");
    finish(*context, task, launch);
  };
  return Variant{"depthwise", bytes(std::max(own, bias_workspace(task))), [kernel] { return kernel; }};
}

Variant direct_variant(const ContextPtr& context, const ConvolutionTask& task) {
  const ConvolutionProblem& p = task.problem;
  const DirectConvolution shape = plain_shape(p);
  const Kernel kernel = [=](const Launch& launch) {
    std::byte *large = launch.operands[task.large], *small = launch.operands[task.small];
    float* weights = output_of(launch, task.weights);
    const cudaStream_t stream = context->stream();
    check(p.product == Product::to_small ? launch_direct_to_small(stream, shape, task.element, large, weights, small)
          : p.product == Product::to_large
              ? launch_direct_to_large(stream, shape, task.element, small, weights, large)
              : launch_direct_to_weights(stream, shape, task.element, large, small, weights, task.add_weights),
          "a convolution");
    finish(*context, task, launch);
  };
  return {"direct", bytes(bias_workspace(task)), [kernel] { return kernel; }, true};
}

}  // namespace

Recipe convolution_recipe(const TaskView& view, const ContextPtr& context) {
  const ConvolutionTask task = task_of(view);
  Recipe recipe;
  for (const ConvolutionProblem& problem : library_problems(task.problem, task.bias.has_value()))
    for (const ConvolutionPlanPtr& plan : ConvolutionPlan::find(*context, problem))
      recipe.push_back(library_variant(context, task, problem, plan));
  if (auto fold = folded(task.problem)) {
    constexpr std::size_t kMostFolded = 2;
    Recipe variants;
    for (const ConvolutionProblem& problem : library_problems(fold->problem, task.bias.has_value())) {
      fold->problem = problem;
      for (const ConvolutionPlanPtr& plan : ConvolutionPlan::find(*context, problem))
        if (variants.size() < kMostFolded) variants.push_back(folded_variant(context, task, *fold, plan));
    }
    recipe.insert(folds_are_faster(task.problem) ? recipe.begin() : recipe.end(), variants.begin(), variants.end());
  }
  const bool is_product = view.layer_kind() == LayerKind::convolution && task.problem.groups == 1 &&
                          task.problem.window == Window::square(1);
  if (is_product) {
    Recipe products =
        dense_recipe(view, context, {task.rows().rows, task.problem.large.channels(), task.output.channels()});
    // In bf16 they are as fast or faster, and gradients of weights stay floats.
    const bool first = task.element == Element::bf16 && task.problem.product != Product::to_large;
    recipe.insert(first ? recipe.begin() : recipe.end(), products.begin(), products.end());
  }
  if (const auto depthwise = depthwise_variant(context, task)) recipe.insert(recipe.begin(), *depthwise);
  // No budget should fail for want of scratch; a quarter of the operands is no want.
  const std::size_t converted = task.element == Element::f32 ? 0 : aligned_bytes(task.weight_count(), task.element);
  const Bytes little = bytes(bias_workspace(task) + converted) + Bytes(task.operand_bytes() / 4);
  const bool frugal =
      std::any_of(recipe.begin(), recipe.end(), [&](const Variant& v) { return v.workspace <= little; });
  if (!frugal) recipe.push_back(direct_variant(context, task));
  return recipe;
}

Recipe transposed_convolution_recipe(const TaskView& view, const ContextPtr& context) {
  return convolution_recipe(view, context);
}

}  // namespace tide::cuda
