#include "backend/cuda/batch_norm.h"
#include "backend/cuda/recipe.h"

namespace tide::cuda {
namespace {

RowsAndChannels rows_and_channels(const Shape& shape) { return {shape.batch() * shape.positions(), shape.channels()}; }

FusedStep fused_of(const TaskView& view) {
  const auto& options = view.options<BatchNormOptions>();
  return {options.fused, static_cast<float>(options.fused_minimum), static_cast<float>(options.fused_maximum)};
}

// What forward, replay and evaluation share.
class Normalization {
 public:
  explicit Normalization(const TaskView& view)
      : shape_(rows_and_channels(view.input())),
        element_(element_of(view, view.read(Role::x))),
        x_(view.read(Role::x)),
        y_(view.written(Role::y)),
        scale_(view.read(Role::weight)),
        shift_(view.read(Role::bias)),
        other_(view.find_read(Role::x, 1)),
        fused_(fused_of(view)) {}

  [[nodiscard]] const void* x(const Launch& launch) const { return launch.operands[x_]; }

  // `epsilon` only where `spread` is a variance.
  void run(const Context& context, const Launch& launch, std::size_t mean, std::size_t spread,
           std::optional<double> epsilon) const {
    const BatchNormApply apply{x(launch),
                               other_ ? launch.operands[*other_] : nullptr,
                               input_of(launch, mean),
                               input_of(launch, spread),
                               input_of(launch, scale_),
                               input_of(launch, shift_),
                               launch.operands[y_],
                               fused_,
                               epsilon.has_value(),
                               epsilon.value_or(0)};
    check(launch_batch_norm_apply(context.stream(), shape_, element_, apply), "batch normalization");
  }

 private:
  RowsAndChannels shape_;
  Element element_;
  std::size_t x_, y_, scale_, shift_;
  std::optional<std::size_t> other_;
  FusedStep fused_;
};

// Where a task puts the statistics of samples, and what it moves by them.
class StatisticsPlaces {
 public:
  explicit StatisticsPlaces(const TaskView& view)
      : mean(view.written(Role::mean)),
        deviation(view.written(Role::inverse_deviation)),
        options_(view.options<BatchNormOptions>()),
        old_mean_(view.find_read(Role::running_mean)),
        old_variance_(view.find_read(Role::running_variance)),
        new_mean_(view.find_written(Role::running_mean)),
        new_variance_(view.find_written(Role::running_variance)) {}

  [[nodiscard]] BatchNormStatistics at(const Launch& launch, std::int64_t rows_before = 0) const {
    return {options_.epsilon,
            options_.momentum,
            output_of(launch, mean),
            output_of(launch, deviation),
            old_mean_ ? input_of(launch, *old_mean_) : nullptr,
            old_variance_ ? input_of(launch, *old_variance_) : nullptr,
            new_mean_ ? output_of(launch, *new_mean_) : nullptr,
            new_variance_ ? output_of(launch, *new_variance_) : nullptr,
            rows_before};
  }

  const std::size_t mean, deviation;

 private:
  BatchNormOptions options_;
  std::optional<std::size_t> old_mean_, old_variance_, new_mean_, new_variance_;
};

Recipe training_recipe(const TaskView& view, const ContextPtr& context) {
  const RowsAndChannels shape = rows_and_channels(view.input());
  const std::size_t x = view.read(Role::x);
  const Element element = element_of(view, x);
  // Without y, the statistics of some of the samples, added to those of the samples before; the last of them
  // moves the running ones.
  std::optional<Normalization> normalization;
  if (view.find_written(Role::y)) normalization.emplace(view);
  const StatisticsPlaces places(view);
  const std::int64_t rows_before = view.first_sample() * (shape.rows / view.samples());
  return recipe(
      [=](const Launch& launch) {
        check(launch_batch_norm_statistics(context->stream(), shape, element, launch.operands[x],
                                           places.at(launch, rows_before), launch.workspace),
              "batch normalization");
        if (normalization) normalization->run(*context, launch, places.mean, places.deviation, {});
      },
      batch_norm_training_bytes(shape, element));
}

// The running statistics, which are kept for backward as they are.
Recipe frozen_recipe(const TaskView& view, const ContextPtr& context) {
  const double epsilon = view.options<BatchNormOptions>().epsilon;
  const std::int64_t channels = view.input().channels();
  const Normalization normalization(view);
  const std::size_t old_mean = view.read(Role::running_mean), old_variance = view.read(Role::running_variance);
  const std::size_t mean = view.written(Role::mean), deviation = view.written(Role::inverse_deviation);
  return recipe([=](const Launch& launch) {
    check(
        launch_batch_norm_frozen(context->stream(), channels, epsilon, input_of(launch, old_mean),
                                 input_of(launch, old_variance), output_of(launch, mean), output_of(launch, deviation)),
        "batch normalization");
    normalization.run(*context, launch, mean, deviation, {});
  });
}

// Of one part of the samples, by itself.
Recipe moments_recipe(const TaskView& view, const ContextPtr& context) {
  const RowsAndChannels shape = rows_and_channels(view.input());
  const std::size_t x = view.read(Role::x), moments = view.written(Role::moments);
  const Element element = element_of(view, x);
  return recipe(
      [=](const Launch& launch) {
        check(launch_batch_norm_moments(context->stream(), shape, element, launch.operands[x],
                                        output_of(launch, moments), launch.workspace),
              "batch normalization");
      },
      batch_norm_training_bytes(shape, element));
}

PartRows part_rows(const TaskView& view) {
  const RowsAndChannels each = rows_and_channels(view.input());
  return {view.shape(view.read(Role::moments)).elements() / (2 * each.channels), each.channels, each.rows};
}

// Statistics of all samples from those of their parts.
Recipe joined_statistics_recipe(const TaskView& view, const ContextPtr& context) {
  const PartRows shape = part_rows(view);
  const std::size_t moments = view.read(Role::moments);
  const StatisticsPlaces places(view);
  return recipe(
      [=](const Launch& launch) {
        check(launch_join_statistics(context->stream(), shape, input_of(launch, moments), places.at(launch),
                                     launch.workspace),
              "batch normalization");
      },
      join_statistics_bytes(shape));
}

// Sums over parts: gradients, or what the input's gradient needs of all samples.
Recipe joined_sums_recipe(const TaskView& view, const ContextPtr& context) {
  const PartRows shape = part_rows(view);
  const std::size_t moments = view.read(Role::moments), scale = view.written(Role::d_weight),
                    shift = view.written(Role::d_bias);
  const bool add_scale = view.accumulates(scale), add_shift = view.accumulates(shift);
  return recipe(
      [=](const Launch& launch) {
        const PartSums sums{output_of(launch, scale), output_of(launch, shift), add_scale, add_shift};
        check(launch_join_sums(context->stream(), shape, input_of(launch, moments), sums, launch.workspace),
              "batch normalization");
      },
      join_sums_bytes(shape));
}

// Replay, and what has the statistics of all samples, normalize with the saved ones, evaluation with the running ones.
Recipe fixed_recipe(const TaskView& view, const ContextPtr& context) {
  const bool replay = view.find_read(Role::mean).has_value();
  const Normalization normalization(view);
  const std::size_t mean = view.read(replay ? Role::mean : Role::running_mean);
  const std::size_t spread = view.read(replay ? Role::inverse_deviation : Role::running_variance);
  const std::optional<double> epsilon = replay ? std::nullopt : std::optional(view.options<BatchNormOptions>().epsilon);
  return recipe([=](const Launch& launch) { normalization.run(*context, launch, mean, spread, epsilon); });
}

std::optional<std::size_t> gradient_of_input(const TaskView& view, std::int16_t input) {
  for (const std::size_t position : view.all_written(Role::dx))
    if (view.operand(position).index == input) return position;
  return {};
}

Recipe backward_recipe(const TaskView& view, const ContextPtr& context) {
  const RowsAndChannels shape = rows_and_channels(view.input());
  const FusedStep fused = fused_of(view);
  const bool has_function = fused.function != FusedFunction::none;
  const std::size_t x = view.read(Role::x), dy = view.read(Role::dy), scale = view.read(Role::weight);
  const std::size_t mean = view.read(Role::mean), deviation = view.read(Role::inverse_deviation);
  const auto second_dy = view.find_read(Role::dy, 1);
  // The rules of the paper have y read where nothing is fused.
  const auto y = has_function ? view.find_read(Role::y) : std::nullopt;
  const auto shift = has_function ? view.find_read(Role::bias) : std::nullopt;
  const auto dx = gradient_of_input(view, 0), other_dx = gradient_of_input(view, 1);
  const auto d_scale = view.find_written(Role::d_weight), d_shift = view.find_written(Role::d_bias);
  const bool add_scale = d_scale && view.accumulates(*d_scale), add_shift = d_shift && view.accumulates(*d_shift);
  if (y && fused.function != FusedFunction::relu && fused.function != FusedFunction::clip)
    throw Error("the slope of {} does not follow from its result", enum_name(fused.function));
  const bool frozen = view.options<BatchNormOptions>().frozen_statistics;
  const Element element = element_of(view, x);
  const auto scale_sums = view.find_read(Role::d_weight), shift_sums = view.find_read(Role::d_bias);
  const std::int64_t all_rows = normalized_samples(view.step().options) * (shape.rows / view.samples());
  return recipe(
      [=](const Launch& launch) {
        const auto at = [&](auto position) { return position ? launch.operands[*position] : nullptr; };
        const auto floats = [&](auto position) { return position ? output_of(launch, *position) : nullptr; };
        const BatchNormBackward backward{launch.operands[x],
                                         at(y),
                                         launch.operands[dy],
                                         at(second_dy),
                                         input_of(launch, scale),
                                         floats(shift),
                                         input_of(launch, mean),
                                         input_of(launch, deviation),
                                         at(dx),
                                         at(other_dx),
                                         floats(d_scale),
                                         floats(d_shift),
                                         add_scale,
                                         add_shift,
                                         fused,
                                         frozen,
                                         scale_sums ? input_of(launch, *scale_sums) : nullptr,
                                         shift_sums ? input_of(launch, *shift_sums) : nullptr,
                                         all_rows};
        check(launch_batch_norm_backward(context->stream(), shape, element, backward, launch.workspace),
              "batch normalization");
      },
      batch_norm_backward_bytes(shape, element));
}

}  // namespace

Recipe batch_norm_recipe(const TaskView& view, const ContextPtr& context) {
  if (view.find_written(Role::moments)) return moments_recipe(view, context);
  if (view.find_read(Role::moments))
    return view.is_forward() ? joined_statistics_recipe(view, context) : joined_sums_recipe(view, context);
  if (!view.is_forward()) return backward_recipe(view, context);
  if (view.find_written(Role::mean))
    return view.options<BatchNormOptions>().frozen_statistics ? frozen_recipe(view, context)
                                                              : training_recipe(view, context);
  return fixed_recipe(view, context);
}

}  // namespace tide::cuda
