// Local response normalization, and the loss.
#include "backend/cuda/channel_rows.h"
#include "backend/cuda/recipe.h"

namespace tide::cuda {

Recipe lrn_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<LrnOptions>();
  const Shape shape = view.input();
  const LrnShape lrn{shape.batch() * shape.positions(),
                     static_cast<int>(shape.channels()),
                     static_cast<int>(options.size / 2),
                     static_cast<float>(options.k),
                     static_cast<float>(options.alpha / static_cast<double>(options.size)),
                     static_cast<float>(options.beta)};
  if (shape.channels() + options.size > kMostLrnChannels)
    throw Error("local response normalization over {} channels does not fit the cuda backend, which takes {}",
                shape.channels(), kMostLrnChannels);
  const std::size_t x = view.read(Role::x);
  const Element element = element_of(view, x);
  if (view.is_forward())
    return recipe([=, y = view.written(Role::y)](const Launch& launch) {
      check(launch_lrn(context->stream(), lrn, element, launch.operands[x], launch.operands[y]),
            "local response normalization");
    });
  return recipe([=, dy = view.read(Role::dy), dx = view.written(Role::dx)](const Launch& launch) {
    check(launch_lrn_backward(context->stream(), lrn, element, launch.operands[x], launch.operands[dy],
                              launch.operands[dx]),
          "local response normalization");
  });
}

Recipe softmax_cross_entropy_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<SoftmaxOptions>();
  const Shape shape = view.input();
  const std::size_t labels = view.read(Role::labels);
  const std::int64_t positions = shape.positions();
  const LossShape loss{shape.batch() * positions,
                       positions,
                       shape.channels(),
                       view.shape(labels).per_sample(),
                       options.label_offset,
                       options.label_smoothing,
                       options.weight,
                       options.soft,
                       options.counted};
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), y = view.written(Role::y), metric = view.written(Role::metric);
    return recipe(
        [=, element = element_of(view, x), adds = view.accumulates(metric)](const Launch& launch) {
          check(
              launch_loss(context->stream(), loss, element, launch.operands[x], input_of<std::int32_t>(launch, labels),
                          output_of(launch, y), output_of(launch, metric), adds, launch.workspace),
              "the loss");
        },
        loss_bytes(loss));
  }
  const std::size_t y = view.read(Role::y), dx = view.written(Role::dx);
  return recipe([=, element = element_of(view, dx)](const Launch& launch) {
    context->set_state(*launch.state);
    check(launch_loss_backward(context->stream(), loss, context->state(), input_of(launch, y),
                               input_of<std::int32_t>(launch, labels), element, launch.operands[dx]),
          "the loss");
  });
}

}  // namespace tide::cuda
