// Batch normalization over NHWC: what each kind of task does with the loops of batch_norm_rows.h.
#include <cmath>
#include <functional>
#include <optional>

#include "backend/cpu/batch_norm_rows.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

// What forward, replay and evaluation share, so that they give the same bits.
struct Normalization {
  explicit Normalization(const TaskView& view)
      : x(view.read(Role::x)),
        other(view.find_read(Role::x, 1)),
        scale(view.read(Role::weight)),
        shift(view.read(Role::bias)),
        y(view.written(Role::y)),
        options(view.options<BatchNormOptions>()) {}

  void run(const Launch& launch, const float* mean, const float* inverse_deviation, float* factor, Index rows,
           Index channels, int threads) const {
    const auto* weights = input_of<float>(launch, scale);
    for (Index c = 0; c < channels; ++c) factor[c] = weights[c] * inverse_deviation[c];
    const auto *from = input_of<float>(launch, x), *offset = input_of<float>(launch, shift);
    const auto* added = other ? input_of<float>(launch, *other) : nullptr;
    auto* to = output_of<float>(launch, y);
    write_all_rows(to, rows, channels, to != from && to != added, threads, [&](Index row, Index size, float* target) {
      const Index at = row * channels;
      if (added == nullptr && options.fused == FusedFunction::none)
        return normalize_rows(from + at, target, size, channels, mean, factor, offset);
      normalize_fused_rows(from + at, added != nullptr ? added + at : nullptr, options, target, size, channels, mean,
                           factor, offset);
    });
  }

  std::size_t x;
  std::optional<std::size_t> other;
  std::size_t scale, shift, y;
  BatchNormOptions options;
};

// Mean, and squares around it, of some numbers.
struct Joined {
  double count = 0, mean = 0, squares = 0;
};

Joined join(const Joined& a, const Joined& b) {
  const double count = a.count + b.count, difference = b.mean - a.mean;
  return {count, a.mean + difference * b.count / count,
          a.squares + b.squares + difference * difference * a.count * b.count / count};
}

// In one binary tree.
template <typename Value, typename Of, typename Join>
Value over_parts(Index begin, Index end, const Of& of, const Join& both) {
  if (end - begin == 1) return of(begin);
  const Index middle = begin + (end - begin) / 2;
  return both(over_parts<Value>(begin, middle, of, both), over_parts<Value>(middle, end, of, both));
}

// The statistics alone of some of the samples are added to those of the samples before; the last of them moves
// the running ones.
Recipe training_recipe(const TaskView& view, Index rows, Index channels, int threads) {
  const BatchNormOptions options = view.options<BatchNormOptions>();
  const std::size_t x = view.read(Role::x);
  std::optional<Normalization> normalization;
  if (view.find_written(Role::y)) normalization.emplace(view);
  const std::size_t mean = view.written(Role::mean), deviation = view.written(Role::inverse_deviation);
  const auto old_mean = view.find_read(Role::running_mean), old_variance = view.find_read(Role::running_variance);
  const auto new_mean = view.find_written(Role::running_mean), new_variance = view.find_written(Role::running_variance);
  const auto before = static_cast<double>(view.first_sample() * (rows / view.samples()));
  const Index parts = std::min<Index>(threads, rows);
  const Index partial_bytes = parts * Partial::bytes(channels);
  const auto kernel = [=](const Launch& launch) {
    const auto* from = input_of<float>(launch, x);
    reduce_rows(launch.workspace, rows, channels, parts, threads,
                [&](const Partial& p, Index row, Index size, Index above) {
                  add_block(from + row * channels, size, channels, static_cast<double>(above), p.block_first,
                            p.block_second, p.pivot, p.first, p.second);
                });
    auto *means = output_of<float>(launch, mean), *deviations = output_of<float>(launch, deviation);
    const double momentum = options.momentum, all = before + static_cast<double>(rows),
                 unbiased = all > 1 ? 1.0 / (all - 1) : 1.0;
    for (Index c = 0; c < channels; ++c) {
      double average = 0, squares = 0, count = before;
      if (before > 0) {
        const auto known = static_cast<double>(deviations[c]);
        average = static_cast<double>(means[c]);
        squares = std::max(0.0, 1 / (known * known) - options.epsilon) * before;
      }
      for (Index part = 0; part < parts; ++part) {
        const Partial p = Partial::existing(launch.workspace, part, channels);
        const Range range = part_of(rows, part, parts);
        const auto size = static_cast<double>(range.end - range.begin);
        const double weight = size / (count + size), difference = p.first[c] - average;
        average += difference * weight;
        squares += p.second[c] + difference * difference * count * weight;
        count += size;
      }
      means[c] = static_cast<float>(average);
      deviations[c] = static_cast<float>(1 / std::sqrt(squares / count + options.epsilon));
      if (!new_mean) continue;
      const auto mean_before = static_cast<double>(input_of<float>(launch, *old_mean)[c]);
      const auto variance_before = static_cast<double>(input_of<float>(launch, *old_variance)[c]);
      output_of<float>(launch, *new_mean)[c] = static_cast<float>((1 - momentum) * mean_before + momentum * average);
      output_of<float>(launch, *new_variance)[c] =
          static_cast<float>((1 - momentum) * variance_before + momentum * squares * unbiased);
    }
    if (!normalization) return;
    normalization->run(launch, means, deviations, reinterpret_cast<float*>(launch.workspace + partial_bytes), rows,
                       channels, threads);
  };
  return recipe(kernel, Bytes(partial_bytes + channels * 4));
}

// The running statistics, which are kept for backward as they are.
Recipe frozen_recipe(const TaskView& view, Index rows, Index channels, int threads) {
  const double epsilon = view.options<BatchNormOptions>().epsilon;
  const Normalization normalization(view);
  const std::size_t old_mean = view.read(Role::running_mean), old_variance = view.read(Role::running_variance);
  const std::size_t mean = view.written(Role::mean), deviation = view.written(Role::inverse_deviation);
  const auto kernel = [=](const Launch& launch) {
    auto *means = output_of<float>(launch, mean), *deviations = output_of<float>(launch, deviation);
    for (Index c = 0; c < channels; ++c) {
      means[c] = input_of<float>(launch, old_mean)[c];
      deviations[c] =
          static_cast<float>(1 / std::sqrt(static_cast<double>(input_of<float>(launch, old_variance)[c]) + epsilon));
    }
    normalization.run(launch, means, deviations, reinterpret_cast<float*>(launch.workspace), rows, channels, threads);
  };
  return recipe(kernel, Bytes(channels * 4));
}

// Mean and sum of squares around it, of the samples at hand.
Recipe moments_recipe(const TaskView& view, Index rows, Index channels, int threads) {
  const std::size_t x = view.read(Role::x), moments = view.written(Role::moments);
  const Index parts = std::min<Index>(threads, rows);
  const auto kernel = [=](const Launch& launch) {
    const auto* from = input_of<float>(launch, x);
    reduce_rows(launch.workspace, rows, channels, parts, threads,
                [&](const Partial& p, Index row, Index size, Index above) {
                  add_block(from + row * channels, size, channels, static_cast<double>(above), p.block_first,
                            p.block_second, p.pivot, p.first, p.second);
                });
    auto* result = output_of<float>(launch, moments);
    for (Index c = 0; c < channels; ++c) {
      Joined all;
      for (Index part = 0; part < parts; ++part) {
        const Partial p = Partial::existing(launch.workspace, part, channels);
        const Range range = part_of(rows, part, parts);
        all = join(all, {static_cast<double>(range.end - range.begin), p.first[c], p.second[c]});
      }
      result[c] = static_cast<float>(all.mean);
      result[channels + c] = static_cast<float>(all.squares);
    }
  };
  return recipe(kernel, Bytes(parts * Partial::bytes(channels)));
}

// Statistics of all samples from those of equal parts of them.
Recipe joined_statistics_recipe(const TaskView& view, Index rows, Index channels) {
  const BatchNormOptions options = view.options<BatchNormOptions>();
  const std::size_t moments = view.read(Role::moments);
  const std::size_t old_mean = view.read(Role::running_mean), old_variance = view.read(Role::running_variance);
  const std::size_t mean = view.written(Role::mean), deviation = view.written(Role::inverse_deviation);
  const std::size_t new_mean = view.written(Role::running_mean), new_variance = view.written(Role::running_variance);
  const Index parts = view.shape(moments).elements() / (2 * channels);
  return recipe([=](const Launch& launch) {
    const auto* from = input_of<float>(launch, moments);
    for (Index c = 0; c < channels; ++c) {
      const Joined all = over_parts<Joined>(
          0, parts,
          [&](Index part) {
            const float* const own = from + part * 2 * channels + c;
            return Joined{static_cast<double>(rows), static_cast<double>(own[0]), static_cast<double>(own[channels])};
          },
          join);
      const double momentum = options.momentum, unbiased = all.count > 1 ? 1.0 / (all.count - 1) : 1.0;
      output_of<float>(launch, mean)[c] = static_cast<float>(all.mean);
      output_of<float>(launch, deviation)[c] =
          static_cast<float>(1 / std::sqrt(all.squares / all.count + options.epsilon));
      const auto mean_before = static_cast<double>(input_of<float>(launch, old_mean)[c]);
      const auto variance_before = static_cast<double>(input_of<float>(launch, old_variance)[c]);
      output_of<float>(launch, new_mean)[c] = static_cast<float>((1 - momentum) * mean_before + momentum * all.mean);
      output_of<float>(launch, new_variance)[c] =
          static_cast<float>((1 - momentum) * variance_before + momentum * all.squares * unbiased);
    }
  });
}

// Sums over parts, of floats as other gradients are: what some ranks have added up goes on with others.
Recipe joined_sums_recipe(const TaskView& view, Index channels) {
  const std::size_t moments = view.read(Role::moments), scale = view.written(Role::d_weight),
                    shift = view.written(Role::d_bias);
  const bool add_scale = view.accumulates(scale), add_shift = view.accumulates(shift);
  const Index parts = view.shape(moments).elements() / (2 * channels);
  return recipe([=](const Launch& launch) {
    const auto* from = input_of<float>(launch, moments);
    const auto sum = [&](Index at) {
      return over_parts<float>(
          0, parts, [&](Index part) { return from[part * 2 * channels + at]; }, std::plus<float>());
    };
    for (Index c = 0; c < channels; ++c) {
      float& of_scale = output_of<float>(launch, scale)[c];
      of_scale = sum(c) + (add_scale ? of_scale : 0.0F);
      float& of_shift = output_of<float>(launch, shift)[c];
      of_shift = sum(channels + c) + (add_shift ? of_shift : 0.0F);
    }
  });
}

// Replay, and what has the statistics of all samples, normalize with the saved ones, evaluation with the running ones.
Recipe fixed_recipe(const TaskView& view, Index rows, Index channels, int threads) {
  const bool replay = view.find_read(Role::mean).has_value();
  const double epsilon = view.options<BatchNormOptions>().epsilon;
  const Normalization normalization(view);
  const std::size_t mean = view.read(replay ? Role::mean : Role::running_mean);
  const std::size_t spread = view.read(replay ? Role::inverse_deviation : Role::running_variance);
  const auto kernel = [=](const Launch& launch) {
    auto* factor = reinterpret_cast<float*>(launch.workspace);
    const float* deviations = input_of<float>(launch, spread);
    if (!replay) {
      float* made = factor + channels;
      for (Index c = 0; c < channels; ++c)
        made[c] = static_cast<float>(1 / std::sqrt(static_cast<double>(deviations[c]) + epsilon));
      deviations = made;
    }
    normalization.run(launch, input_of<float>(launch, mean), deviations, factor, rows, channels, threads);
  };
  return recipe(kernel, Bytes(channels * (replay ? 4 : 8)));
}

std::optional<std::size_t> gradient_of_input(const TaskView& view, std::int16_t input) {
  for (const std::size_t position : view.all_written(Role::dx))
    if (view.operand(position).index == input) return position;
  return {};
}

// What comes before the backward pass of a fused batch norm: its gradients summed where relu was
// open. They go where they are wanted in the end: the second input's gradient is just that, and
// the first one's is made from it in place.
class GradientGate {
 public:
  explicit GradientGate(const TaskView& view)
      : x_(view.read(Role::x)),
        dy_(view.read(Role::dy)),
        scale_(view.read(Role::weight)),
        mean_(view.read(Role::mean)),
        deviation_(view.read(Role::inverse_deviation)),
        second_(view.find_read(Role::dy, 1)),
        y_(view.find_read(Role::y)),
        shift_(view.find_read(Role::bias)),
        target_(gradient_of_input(view, 1)),
        options_(view.options<BatchNormOptions>()),
        needed_(second_ || options_.fused != FusedFunction::none) {
    if (!target_) target_ = gradient_of_input(view, 0);
  }
  [[nodiscard]] bool needed() const { return needed_; }
  [[nodiscard]] bool needs_memory() const { return needed_ && !target_; }

  const float* run(const Launch& launch, float* factor, std::byte* memory, Index rows, Index channels,
                   int threads) const {
    const auto* weights = input_of<float>(launch, scale_);
    const auto* deviations = input_of<float>(launch, deviation_);
    for (Index c = 0; c < channels; ++c) factor[c] = weights[c] * deviations[c];
    const Gate gate{y_ ? input_of<float>(launch, *y_) : nullptr,
                    shift_ ? input_of<float>(launch, x_) : nullptr,
                    input_of<float>(launch, mean_),
                    factor,
                    shift_ ? input_of<float>(launch, *shift_) : nullptr,
                    options_};
    const auto* first = input_of<float>(launch, dy_);
    const auto* second = second_ ? input_of<float>(launch, *second_) : nullptr;
    auto* made = target_ ? output_of<float>(launch, *target_) : reinterpret_cast<float*>(memory);
    parallel_ranges(threads, rows, kElementGrain / channels + 1,
                    [&](Index begin, Index end) { gate_rows(gate, first, second, made, begin, end, channels); });
    return made;
  }

 private:
  std::size_t x_, dy_, scale_, mean_, deviation_;
  std::optional<std::size_t> second_, y_, shift_, target_;
  BatchNormOptions options_;
  bool needed_;
};

// The input's gradient of some of the samples, from sums over all of them.
Recipe spread_recipe(const TaskView& view, Index rows, Index channels, int threads) {
  const std::size_t x = view.read(Role::x), dy = view.read(Role::dy), scale = view.read(Role::weight),
                    dx = view.written(Role::dx);
  const std::size_t mean = view.read(Role::mean), deviation = view.read(Role::inverse_deviation);
  const std::size_t scale_sums = view.read(Role::d_weight), shift_sums = view.read(Role::d_bias);
  const auto all = static_cast<double>(normalized_samples(view.step().options) * (rows / view.samples()));
  const auto kernel = [=](const Launch& launch) {
    auto* factor = reinterpret_cast<float*>(launch.workspace);
    float *slope = factor + channels, *offset = slope + channels;
    const auto *means = input_of<float>(launch, mean), *deviations = input_of<float>(launch, deviation);
    for (Index c = 0; c < channels; ++c) {
      const auto inverse = static_cast<double>(deviations[c]);
      const double gain = static_cast<double>(input_of<float>(launch, scale)[c]) * inverse;
      factor[c] = static_cast<float>(gain);
      slope[c] =
          static_cast<float>(-gain * inverse * static_cast<double>(input_of<float>(launch, scale_sums)[c]) / all);
      offset[c] = static_cast<float>(-gain * static_cast<double>(input_of<float>(launch, shift_sums)[c]) / all);
    }
    const auto *values = input_of<float>(launch, x), *gradients = input_of<float>(launch, dy);
    auto* to = output_of<float>(launch, dx);
    write_all_rows(to, rows, channels, to != values && to != gradients, threads,
                   [&](Index row, Index size, float* target) {
                     gradient_rows(values + row * channels, gradients + row * channels, target, size, channels, means,
                                   factor, slope, offset);
                   });
  };
  return recipe(kernel, Bytes(channels * 12));
}

Recipe backward_recipe(const TaskView& view, Index rows, Index channels, int threads) {
  const std::size_t x = view.read(Role::x), dy = view.read(Role::dy), scale = view.read(Role::weight);
  const std::size_t mean = view.read(Role::mean), deviation = view.read(Role::inverse_deviation);
  const auto d_scale = view.find_written(Role::d_weight), d_shift = view.find_written(Role::d_bias);
  const auto dx = gradient_of_input(view, 0);
  const bool frozen = view.options<BatchNormOptions>().frozen_statistics;
  const bool add_scale = d_scale && view.accumulates(*d_scale), add_shift = d_shift && view.accumulates(*d_shift);
  const Index parts = std::min<Index>(threads, rows);
  const Index partial_bytes = parts * Partial::bytes(channels), scratch_bytes = partial_bytes + channels * 12;
  const GradientGate gate(view);
  const auto kernel = [=](const Launch& launch) {
    auto* factor = reinterpret_cast<float*>(launch.workspace + partial_bytes);
    const auto* values = input_of<float>(launch, x);
    const float* gradients = input_of<float>(launch, dy);
    if (gate.needed()) gradients = gate.run(launch, factor, launch.workspace + scratch_bytes, rows, channels, threads);
    const auto *means = input_of<float>(launch, mean), *deviations = input_of<float>(launch, deviation);
    reduce_rows(launch.workspace, rows, channels, parts, threads, [&](const Partial& p, Index row, Index size, Index) {
      add_gradient_block(values + row * channels, gradients + row * channels, means, size, channels, p.block_first,
                         p.block_second, p.first, p.second);
    });
    float *slope = factor + channels, *offset = slope + channels;
    for (Index c = 0; c < channels; ++c) {
      double sum = 0, product = 0;
      for (Index part = 0; part < parts; ++part) {
        const Partial p = Partial::existing(launch.workspace, part, channels);
        sum += p.first[c];
        product += p.second[c];
      }
      const auto inverse = static_cast<double>(deviations[c]);
      const double gain = static_cast<double>(input_of<float>(launch, scale)[c]) * inverse;
      factor[c] = static_cast<float>(gain);
      // Statistics that are frozen do not move with x.
      slope[c] = frozen ? 0.0F : static_cast<float>(-gain * inverse * inverse * product / static_cast<double>(rows));
      offset[c] = frozen ? 0.0F : static_cast<float>(-gain * sum / static_cast<double>(rows));
      if (d_scale) {
        float& target = output_of<float>(launch, *d_scale)[c];
        target = static_cast<float>(product * inverse) + (add_scale ? target : 0.0F);
      }
      if (d_shift) {
        float& target = output_of<float>(launch, *d_shift)[c];
        target = static_cast<float>(sum) + (add_shift ? target : 0.0F);
      }
    }
    if (!dx) return;
    auto* to = output_of<float>(launch, *dx);
    write_all_rows(to, rows, channels, to != values && to != gradients, threads,
                   [&](Index row, Index size, float* target) {
                     gradient_rows(values + row * channels, gradients + row * channels, target, size, channels, means,
                                   factor, slope, offset);
                   });
  };
  return recipe(kernel, Bytes(scratch_bytes + (gate.needs_memory() ? rows * channels * 4 : 0)));
}

}  // namespace

Recipe batch_norm_recipe(const TaskView& view, const ContextPtr& context) {
  const Shape shape = view.input();
  const Index rows = shape.batch() * shape.positions(), channels = shape.channels();
  const int threads = team_for(shape.elements(), threads_of(context));
  if (view.find_written(Role::moments)) return moments_recipe(view, rows, channels, threads);
  if (view.find_read(Role::moments))
    return view.is_forward() ? joined_statistics_recipe(view, rows, channels) : joined_sums_recipe(view, channels);
  if (view.find_read(Role::d_weight)) return spread_recipe(view, rows, channels, threads);
  if (!view.is_forward()) return backward_recipe(view, rows, channels, threads);
  if (view.find_written(Role::mean) && view.options<BatchNormOptions>().frozen_statistics)
    return frozen_recipe(view, rows, channels, threads);
  if (view.find_written(Role::mean)) return training_recipe(view, rows, channels, threads);
  return fixed_recipe(view, rows, channels, threads);
}

}  // namespace tide::cpu
