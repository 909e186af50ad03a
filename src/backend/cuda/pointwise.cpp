// Activations, dropout, sums, copies, products, concat and split.
#include "backend/cuda/conversion.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/recipe.h"

namespace tide::cuda {
namespace {

std::int64_t count_of(const TaskView& view, std::size_t position) { return view.shape(position).elements(); }

Recipe binary_recipe(const TaskView& view, const ContextPtr& context, Binary operation, std::size_t first,
                     std::size_t second, std::size_t to) {
  return recipe([=, count = count_of(view, to), element = element_of(view, to)](const Launch& launch) {
    check(launch_binary(context->stream(), operation, element, launch.operands[first], launch.operands[second],
                        launch.operands[to], count),
          "an elementwise kernel");
  });
}

// Backward takes y and dy.
Recipe activation_recipe(const TaskView& view, const ContextPtr& context, Unary forward, Binary backward) {
  if (!view.is_forward())
    return binary_recipe(view, context, backward, view.read(Role::y), view.read(Role::dy), view.written(Role::dx));
  const std::size_t x = view.read(Role::x), y = view.written(Role::y);
  return recipe([=, count = count_of(view, y), element = element_of(view, y)](const Launch& launch) {
    check(launch_unary(context->stream(), forward, element, launch.operands[x], launch.operands[y], count),
          "an elementwise kernel");
  });
}

Recipe copy_recipe(const TaskView& view, const ContextPtr& context, Role from, Role to) {
  const std::size_t source = view.read(from);
  const std::vector<std::size_t> targets = view.all_written(to);
  const std::size_t size = static_cast<std::size_t>(count_of(view, source)) * size_of(element_of(view, source));
  return recipe([=](const Launch& launch) {
    for (const std::size_t target : targets)
      if (launch.operands[target] != launch.operands[source])
        check(cudaMemcpyAsync(launch.operands[target], launch.operands[source], size, cudaMemcpyDeviceToDevice,
                              context->stream()),
              "a copy");
  });
}

Recipe channels_recipe(const TaskView& view, const ContextPtr& context, bool concat) {
  const bool gather = concat == view.is_forward();  // from the parts into the whole
  const Role part_role = concat ? (view.is_forward() ? Role::x : Role::dx) : (view.is_forward() ? Role::y : Role::dy);
  const Role whole_role = concat ? (view.is_forward() ? Role::y : Role::dy) : (view.is_forward() ? Role::x : Role::dx);
  const Shape shape = concat ? view.output() : view.input();
  const std::size_t whole = gather ? view.written(whole_role) : view.read(whole_role);
  const std::vector<ChannelPart> parts =
      channel_parts(view, gather ? view.all_read(part_role) : view.all_written(part_role));
  const std::int64_t rows = shape.batch() * shape.positions(), width = shape.channels();
  return recipe([=, element = element_of(view, whole)](const Launch& launch) {
    for (const ChannelPart& part : parts) {
      std::byte* wide = launch.operands[whole] + static_cast<std::size_t>(part.offset) * size_of(element);
      std::byte* narrow = launch.operands[part.position];
      const cudaStream_t stream = context->stream();
      check(gather ? launch_copy_columns(stream, element, narrow, part.channels, wide, width, rows, part.channels)
                   : launch_copy_columns(stream, element, wide, width, narrow, part.channels, rows, part.channels),
            "copying channels");
    }
  });
}

}  // namespace

Recipe relu_recipe(const TaskView& view, const ContextPtr& context) {
  return activation_recipe(view, context, Unary::relu, Binary::relu_backward);
}

Recipe sigmoid_recipe(const TaskView& view, const ContextPtr& context) {
  return activation_recipe(view, context, Unary::sigmoid, Binary::sigmoid_backward);
}

Recipe tanh_recipe(const TaskView& view, const ContextPtr& context) {
  return activation_recipe(view, context, Unary::tanh, Binary::tanh_backward);
}

Recipe add_recipe(const TaskView& view, const ContextPtr& context) {
  return view.is_forward() ? sum_recipe(view, context, Role::x, Role::y)
                           : copy_recipe(view, context, Role::dy, Role::dx);
}

Recipe fork_recipe(const TaskView& view, const ContextPtr& context) {
  return view.is_forward() ? copy_recipe(view, context, Role::x, Role::y)
                           : sum_recipe(view, context, Role::dy, Role::dx);
}

Recipe input_recipe(const TaskView& view, const ContextPtr& context) {
  const std::size_t x = view.read(Role::x), y = view.written(Role::y);
  return recipe([=, count = count_of(view, y), element = element_of(view, y)](const Launch& launch) {
    check(launch_convert(context->stream(), input_of(launch, x), element, launch.operands[y], count),
          "converting the batch");
  });
}

// Backward is forward with dy for x.
Recipe dropout_recipe(const TaskView& view, const ContextPtr& context) {
  const std::size_t from = view.is_forward() ? view.read(Role::x) : view.read(Role::dy);
  const std::size_t to = view.is_forward() ? view.written(Role::y) : view.written(Role::dx);
  const Shape shape = view.input();
  const DropoutShape dropout{shape.batch(), shape.per_sample(), view.random_stream(),
                             static_cast<float>(view.options<DropoutOptions>().rate), view.first_sample()};
  return recipe([=, element = element_of(view, to)](const Launch& launch) {
    context->set_state(*launch.state);
    check(launch_dropout(context->stream(), dropout, context->state(), element, launch.operands[from],
                         launch.operands[to]),
          "dropout");
  });
}

Recipe sum_recipe(const TaskView& view, const ContextPtr& context, Role from, Role to) {
  const std::vector<std::size_t> sources = view.all_read(from);
  const std::size_t target = view.written(to);
  if (sources.size() == 2) return binary_recipe(view, context, Binary::add, sources[0], sources[1], target);
  if (sources.size() > kMostAddends)
    throw Error("task '{}' adds {} tensors; the cuda backend adds {} at most, so nest the additions",
                task_name(view.step(), view.id()), sources.size(), kMostAddends);
  return recipe([=, count = count_of(view, target), element = element_of(view, target)](const Launch& launch) {
    Addends addends{};
    for (const std::size_t source : sources) addends.x[addends.count++] = launch.operands[source];
    check(launch_sum(context->stream(), addends, element, launch.operands[target], count), "a sum");
  });
}

Recipe multiply_recipe(const TaskView& view, const ContextPtr& context) {
  const std::size_t a = view.read(Role::x, 0), b = view.read(Role::x, 1);
  if (view.is_forward()) {
    return binary_recipe(view, context, Binary::multiply, a, b, view.written(Role::y));
  }
  const std::size_t dy = view.read(Role::dy);
  const std::vector<std::size_t> targets = view.all_written(Role::dx);
  if (targets.size() == 1) {
    const std::size_t other = view.operand(targets[0]).index == 0 ? b : a;
    return binary_recipe(view, context, Binary::multiply, dy, other, targets[0]);
  }
  return recipe([=, count = count_of(view, dy), element = element_of(view, dy)](const Launch& launch) {
    check(
        launch_multiply_backward(context->stream(), element, launch.operands[a], launch.operands[b],
                                 launch.operands[dy], launch.operands[targets[0]], launch.operands[targets[1]], count),
        "an elementwise kernel");
  });
}

Recipe concat_recipe(const TaskView& view, const ContextPtr& context) { return channels_recipe(view, context, true); }
Recipe split_recipe(const TaskView& view, const ContextPtr& context) { return channels_recipe(view, context, false); }

}  // namespace tide::cuda
