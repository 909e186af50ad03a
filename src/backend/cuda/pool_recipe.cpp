#include "backend/cuda/pool.h"
#include "backend/cuda/recipe.h"

namespace tide::cuda {
namespace {

int narrow(std::int64_t value) { return static_cast<int>(value); }

PoolShape shape_of(const Window& w, const Shape& input, const Shape& output) {
  const auto axis = [](std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t before,
                       std::int64_t after, std::int64_t dilation) {
    return PoolAxis{narrow(in),     narrow(out),   narrow(kernel),  narrow(stride),
                    narrow(before), narrow(after), narrow(dilation)};
  };
  return {
      input.batch(), narrow(input.channels()),
      axis(input.height(), output.height(), w.kernel_height, w.stride_height, w.pad_top, w.pad_bottom,
           w.dilation_height),
      axis(input.width(), output.width(), w.kernel_width, w.stride_width, w.pad_left, w.pad_right, w.dilation_width)};
}

Element pooled_element(const TaskView& view) {
  return element_of(view, view.is_forward() ? view.written(Role::y) : view.written(Role::dx));
}

// Its two directions have the same arguments.
template <typename Forward, typename Backward>
Recipe two_way_recipe(const TaskView& view, Forward forward, Backward backward) {
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), y = view.written(Role::y);
    return recipe([=](const Launch& launch) { check(forward(launch.operands[x], launch.operands[y]), "pooling"); });
  }
  const std::size_t dy = view.read(Role::dy), dx = view.written(Role::dx);
  return recipe([=](const Launch& launch) { check(backward(launch.operands[dy], launch.operands[dx]), "pooling"); });
}

}  // namespace

Recipe max_pool_recipe(const TaskView& view, const ContextPtr& context) {
  const PoolShape shape = shape_of(view.options<PoolOptions>().window, view.input(), view.output());
  const auto indices = view.is_forward() ? view.find_written(Role::indices) : view.find_read(Role::indices);
  const bool wide = indices && view.tensor(*indices).type == DataType::i32;
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), y = view.written(Role::y);
    return recipe([=, element = element_of(view, y)](const Launch& launch) {
      check(launch_max_pool(context->stream(), shape, element, launch.operands[x], launch.operands[y],
                            indices ? launch.operands[*indices] : nullptr, wide),
            "max pooling");
    });
  }
  const std::size_t dy = view.read(Role::dy), dx = view.written(Role::dx);
  const Element element = element_of(view, dx);
  if (indices)
    return recipe([=](const Launch& launch) {
      check(launch_max_pool_backward(context->stream(), shape, element, launch.operands[*indices], wide,
                                     launch.operands[dy], launch.operands[dx]),
            "max pooling");
    });
  const std::size_t x = view.read(Role::x);
  return recipe([=](const Launch& launch) {
    check(launch_max_pool_backward_from_input(context->stream(), shape, element, launch.operands[x],
                                              launch.operands[dy], launch.operands[dx]),
          "max pooling");
  });
}

Recipe global_average_pool_recipe(const TaskView& view, const ContextPtr& context) {
  const Shape input = view.input();
  const Element element = pooled_element(view);
  const std::int64_t positions = input.positions();
  const int channels = narrow(input.channels());
  return two_way_recipe(
      view,
      [=](const void* x, void* y) {
        return launch_global_average_pool(context->stream(), input.batch(), positions, channels, element, x, y);
      },
      [=](const void* dy, void* dx) {
        return launch_global_average_pool_backward(context->stream(), input.batch(), positions, channels, element, dy,
                                                   dx);
      });
}

Recipe average_pool_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<PoolOptions>();
  const Element element = pooled_element(view);
  const PoolShape shape = shape_of(options.window, view.input(), view.output());
  const bool count_padding = options.count_padding;
  return two_way_recipe(
      view,
      [=](const void* x, void* y) {
        return launch_average_pool(context->stream(), shape, element, count_padding, x, y);
      },
      [=](const void* dy, void* dx) {
        return launch_average_pool_backward(context->stream(), shape, element, count_padding, dy, dx);
      });
}

}  // namespace tide::cuda
