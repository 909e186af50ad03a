// Batch normalization, local response normalization, and the loss.
#include "backend/cuda/channel_rows.h"
#include "backend/cuda/column_sums.h"
#include "backend/cuda/recipe.h"

namespace tide::cuda {
namespace {

RowsAndChannels rows_and_channels(const Shape& shape) {
  return {shape.batch * shape.height * shape.width, shape.channels};
}

Recipe batch_norm_training_recipe(const TaskView& view, const ContextPtr& context) {
  const BatchNormOptions options = view.options<BatchNormOptions>();
  const RowsAndChannels shape = rows_and_channels(view.input());
  const std::size_t x = view.read(Role::x), y = view.written(Role::y), scale = view.read(Role::weight),
                    shift = view.read(Role::bias);
  const std::size_t mean = view.written(Role::mean), deviation = view.written(Role::inverse_deviation);
  const std::size_t old_mean = view.read(Role::running_mean), old_variance = view.read(Role::running_variance);
  const std::size_t new_mean = view.written(Role::running_mean), new_variance = view.written(Role::running_variance);
  return recipe(
      [=](const Launch& launch) {
        const BatchNormStatistics statistics{options.epsilon,
                                             options.momentum,
                                             output_of(launch, mean),
                                             output_of(launch, deviation),
                                             input_of(launch, old_mean),
                                             input_of(launch, old_variance),
                                             output_of(launch, new_mean),
                                             output_of(launch, new_variance)};
        check(launch_batch_norm_statistics(context->stream(), shape, input_of(launch, x), statistics, launch.workspace),
              "batch normalization");
        check(
            launch_batch_norm_apply(context->stream(), shape,
                                    {input_of(launch, x), input_of(launch, mean), input_of(launch, deviation),
                                     input_of(launch, scale), input_of(launch, shift), output_of(launch, y), false, 0}),
            "batch normalization");
      },
      batch_norm_training_bytes(shape));
}

// Replay normalizes with the saved statistics, evaluation with the running ones.
Recipe batch_norm_fixed_recipe(const TaskView& view, const ContextPtr& context) {
  const bool replay = view.kind() == TaskKind::replay;
  const double epsilon = view.options<BatchNormOptions>().epsilon;
  const RowsAndChannels shape = rows_and_channels(view.input());
  const std::size_t x = view.read(Role::x), y = view.written(Role::y), scale = view.read(Role::weight),
                    shift = view.read(Role::bias);
  const std::size_t mean = view.read(replay ? Role::mean : Role::running_mean);
  const std::size_t spread = view.read(replay ? Role::inverse_deviation : Role::running_variance);
  return recipe([=](const Launch& launch) {
    check(launch_batch_norm_apply(
              context->stream(), shape,
              {input_of(launch, x), input_of(launch, mean), input_of(launch, spread), input_of(launch, scale),
               input_of(launch, shift), output_of(launch, y), !replay, epsilon}),
          "batch normalization");
  });
}

Recipe batch_norm_backward_recipe(const TaskView& view, const ContextPtr& context) {
  const RowsAndChannels shape = rows_and_channels(view.input());
  const std::size_t x = view.read(Role::x), dy = view.read(Role::dy), scale = view.read(Role::weight);
  const std::size_t mean = view.read(Role::mean), deviation = view.read(Role::inverse_deviation);
  const auto dx = view.find_written(Role::dx), d_scale = view.find_written(Role::d_weight),
             d_shift = view.find_written(Role::d_bias);
  const bool add_scale = d_scale && view.accumulates(*d_scale), add_shift = d_shift && view.accumulates(*d_shift);
  return recipe(
      [=](const Launch& launch) {
        const auto made = [&](auto position) { return position ? output_of(launch, *position) : nullptr; };
        check(launch_batch_norm_backward(
                  context->stream(), shape,
                  {input_of(launch, x), input_of(launch, dy), input_of(launch, scale), input_of(launch, mean),
                   input_of(launch, deviation), made(dx), made(d_scale), made(d_shift), add_scale, add_shift},
                  launch.workspace),
              "batch normalization");
      },
      batch_norm_backward_bytes(shape));
}

}  // namespace

Recipe batch_norm_recipe(const TaskView& view, const ContextPtr& context) {
  if (!view.is_forward()) return batch_norm_backward_recipe(view, context);
  if (view.find_written(Role::mean)) return batch_norm_training_recipe(view, context);
  return batch_norm_fixed_recipe(view, context);
}

Recipe lrn_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<LrnOptions>();
  const Shape shape = view.input();
  const LrnShape lrn{shape.batch * shape.height * shape.width,
                     static_cast<int>(shape.channels),
                     static_cast<int>(options.size / 2),
                     static_cast<float>(options.k),
                     static_cast<float>(options.alpha / static_cast<double>(options.size)),
                     static_cast<float>(options.beta)};
  if (shape.channels + options.size > kMostLrnChannels)
    throw Error("local response normalization over {} channels does not fit the cuda backend, which takes {}",
                shape.channels, kMostLrnChannels);
  const std::size_t x = view.read(Role::x);
  if (view.is_forward())
    return recipe([=, y = view.written(Role::y)](const Launch& launch) {
      check(launch_lrn(context->stream(), lrn, input_of(launch, x), output_of(launch, y)),
            "local response normalization");
    });
  return recipe([=, dy = view.read(Role::dy), dx = view.written(Role::dx)](const Launch& launch) {
    check(launch_lrn_backward(context->stream(), lrn, input_of(launch, x), input_of(launch, dy), output_of(launch, dx)),
          "local response normalization");
  });
}

Recipe loss_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<SoftmaxOptions>();
  const Shape shape = view.input();
  const std::size_t labels = view.read(Role::labels);
  const std::int64_t positions = shape.height * shape.width;
  const LossShape loss{shape.batch * positions, positions,
                       shape.channels,          view.tensor(labels).shape.per_sample(),
                       options.label_offset,    options.label_smoothing,
                       options.weight};
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), y = view.written(Role::y), metric = view.written(Role::metric);
    return recipe(
        [=](const Launch& launch) {
          check(launch_loss(context->stream(), loss, input_of(launch, x), input_of<std::int32_t>(launch, labels),
                            output_of(launch, y), output_of(launch, metric), launch.workspace),
                "the loss");
        },
        loss_bytes(loss));
  }
  const std::size_t y = view.read(Role::y), dx = view.written(Role::dx);
  return recipe([=](const Launch& launch) {
    context->set_state(*launch.state);
    check(launch_loss_backward(context->stream(), loss, context->state(), input_of(launch, y),
                               input_of<std::int32_t>(launch, labels), output_of(launch, dx)),
          "the loss");
  });
}

}  // namespace tide::cuda
