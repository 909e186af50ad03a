// Batch normalization, and local response normalization across channels.
#include <algorithm>
#include <cmath>

#include "backend/reference/functions.h"
#include "backend/reference/task.h"
#include "base/tree_sum.h"
#include "network/kind.h"

namespace tide::reference {
namespace {

struct Statistics {
  Values mean, variance;  // per channel; the variance is the biased one
};

Statistics statistics(const Values& x, std::size_t channels) {
  Statistics result{Values(channels, 0.0), Values(channels, 0.0)};
  const auto count = static_cast<double>(x.size() / channels);
  for (std::size_t i = 0; i < x.size(); ++i) result.mean[i % channels] += x[i] / count;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double deviation = x[i] - result.mean[i % channels];
    result.variance[i % channels] += deviation * deviation / count;
  }
  return result;
}

void normalize(const ReferenceTask& task, const Values& mean, const Values& inverse_deviation) {
  const Values &x = task.in(Role::x), &scale = task.in(Role::weight), &shift = task.in(Role::bias);
  Values& y = task.out(Role::y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % mean.size();
    y[i] = (x[i] - mean[c]) * inverse_deviation[c] * scale[c] + shift[c];
    if (task.view.find_read(Role::x, 1)) y[i] += task.in(Role::x, 1)[i];
    y[i] = apply_fused(task.view.options<BatchNormOptions>(), y[i]);
  }
}

Values inverse_deviations(const Values& variance, double epsilon) {
  Values result(variance.size());
  for (std::size_t c = 0; c < result.size(); ++c) result[c] = 1 / std::sqrt(variance[c] + epsilon);
  return result;
}

// Makes statistics of `count` samples those of all, with `before` samples that are known by mean and deviation.
void add_statistics(Statistics& batch, double count, const Values& mean, const Values& deviation, double before,
                    double epsilon) {
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const double variance = 1 / (deviation[c] * deviation[c]) - epsilon, difference = batch.mean[c] - mean[c],
                 all = before + count;
    batch.variance[c] =
        (batch.variance[c] * count + variance * before + difference * difference * before * count / all) / all;
    batch.mean[c] = mean[c] + difference * count / all;
  }
}

void part_moments(const ReferenceTask& task) {
  const Values& x = task.in(Role::x);
  const auto channels = static_cast<std::size_t>(task.view.input().channels());
  const Statistics batch = statistics(x, channels);
  Values& moments = task.out(Role::moments);
  moments.resize(2 * channels);
  for (std::size_t c = 0; c < channels; ++c) {
    moments[c] = batch.mean[c];
    moments[channels + c] = batch.variance[c] * static_cast<double>(x.size() / channels);
  }
}

void joined_statistics(const ReferenceTask& task) {
  const auto& options = task.view.options<BatchNormOptions>();
  const Values& moments = task.in(Role::moments);
  const Shape input = task.view.input();
  const auto channels = static_cast<std::size_t>(input.channels());
  const std::size_t parts = moments.size() / (2 * channels);
  const auto each = static_cast<double>(input.batch() * input.positions()), count = each * static_cast<double>(parts);
  const Values &old_mean = task.in(Role::running_mean), &old_variance = task.in(Role::running_variance);
  Values &means = task.out(Role::mean), &deviations = task.out(Role::inverse_deviation),
         &new_mean = task.out(Role::running_mean), &new_variance = task.out(Role::running_variance);
  for (std::size_t c = 0; c < channels; ++c) {
    double mean = 0, squares = 0;
    for (std::size_t p = 0; p < parts; ++p) mean += moments[p * 2 * channels + c] / static_cast<double>(parts);
    for (std::size_t p = 0; p < parts; ++p) {
      const double difference = moments[p * 2 * channels + c] - mean;
      squares += moments[(p * 2 + 1) * channels + c] + difference * difference * each;
    }
    means[c] = mean;
    deviations[c] = 1 / std::sqrt(squares / count + options.epsilon);
    new_mean[c] = (1 - options.momentum) * old_mean[c] + options.momentum * mean;
    new_variance[c] =
        (1 - options.momentum) * old_variance[c] + options.momentum * squares / (count > 1 ? count - 1 : 1);
  }
}

// In one tree whose nodes are floats, as they are where it goes on over the ranks.
void joined_sums(const ReferenceTask& task) {
  const Values& moments = task.in(Role::moments);
  const auto channels = static_cast<std::size_t>(task.view.input().channels());
  const std::size_t parts = moments.size() / (2 * channels);
  for (const auto& [role, row] : {std::pair(Role::d_weight, std::size_t{0}), std::pair(Role::d_bias, channels)}) {
    Values& target = task.out(role);
    for (std::size_t c = 0; c < channels; ++c) {
      std::vector<float> sums(parts);
      for (std::size_t p = 0; p < parts; ++p) sums[p] = static_cast<float>(moments[p * 2 * channels + row + c]);
      target[c] += static_cast<double>(tree_sum(std::span(sums)));
    }
  }
}

void batch_norm_forward(const ReferenceTask& task) {
  const auto& options = task.view.options<BatchNormOptions>();
  if (task.writes(Role::moments)) return part_moments(task);
  if (task.view.find_read(Role::moments)) return joined_statistics(task);
  if (task.view.find_read(Role::mean)) return normalize(task, task.in(Role::mean), task.in(Role::inverse_deviation));
  if (!task.writes(Role::mean))
    return normalize(task, task.in(Role::running_mean),
                     inverse_deviations(task.in(Role::running_variance), options.epsilon));

  if (options.frozen_statistics) {
    task.out(Role::mean) = task.in(Role::running_mean);
    task.out(Role::inverse_deviation) = inverse_deviations(task.in(Role::running_variance), options.epsilon);
    return normalize(task, task.in(Role::running_mean),
                     inverse_deviations(task.in(Role::running_variance), options.epsilon));
  }
  const Values& x = task.in(Role::x);
  const auto channels = static_cast<std::size_t>(task.view.input().channels());
  Statistics batch = statistics(x, channels);
  auto count = static_cast<double>(x.size() / channels);
  const auto before = static_cast<double>(task.view.first_sample()) * count / static_cast<double>(task.view.samples());
  if (before > 0)
    add_statistics(batch, count, task.out(Role::mean), task.out(Role::inverse_deviation), before, options.epsilon);
  count += before;
  const Values deviations = inverse_deviations(batch.variance, options.epsilon);
  task.out(Role::mean) = batch.mean;
  task.out(Role::inverse_deviation) = deviations;
  if (!task.writes(Role::running_mean)) return;  // those of all samples come last
  const double unbiased = count > 1 ? count / (count - 1) : 1;
  const Values &old_mean = task.in(Role::running_mean), &old_variance = task.in(Role::running_variance);
  Values &new_mean = task.out(Role::running_mean), &new_variance = task.out(Role::running_variance);
  for (std::size_t c = 0; c < channels; ++c) {
    new_mean[c] = (1 - options.momentum) * old_mean[c] + options.momentum * batch.mean[c];
    new_variance[c] = (1 - options.momentum) * old_variance[c] + options.momentum * batch.variance[c] * unbiased;
  }
  if (task.writes(Role::y)) normalize(task, batch.mean, deviations);
}

// The channels that channel c of an LRN sums over: [c - size / 2, c + size / 2], clipped.
template <typename Visit>
void for_each_neighbour(std::int64_t c, std::int64_t size, std::int64_t channels, Visit visit) {
  for (std::int64_t j = std::max<std::int64_t>(0, c - size / 2); j <= std::min(channels - 1, c + size / 2); ++j)
    visit(j);
}

}  // namespace

namespace {

// The sum of the gradients of y, behind the function that is fused.
Values arriving_gradient(const ReferenceTask& task) {
  Values sum = task.in(Role::dy);
  if (task.view.find_read(Role::dy, 1))
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += task.in(Role::dy, 1)[i];
  const auto& options = task.view.options<BatchNormOptions>();
  if (options.fused == FusedFunction::none) return sum;
  const bool has_y = task.view.find_read(Role::y).has_value();
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const auto normalized = [&] {
      const std::size_t c = i % task.in(Role::mean).size();
      return (task.in(Role::x)[i] - task.in(Role::mean)[c]) * task.in(Role::inverse_deviation)[c] *
                 task.in(Role::weight)[c] +
             task.in(Role::bias)[c];
    };
    // Of relu and clip the result says as much as what it was made of.
    sum[i] *= fused_slope(options, has_y ? task.in(Role::y)[i] : normalized());
  }
  return sum;
}

}  // namespace

void run_batch_norm(const ReferenceTask& task) {
  if (task.view.is_forward()) return batch_norm_forward(task);
  if (task.view.find_read(Role::moments)) return joined_sums(task);
  const Values &x = task.in(Role::x), &scale = task.in(Role::weight);
  const Values dy = arriving_gradient(task);
  const Values &mean = task.in(Role::mean), &inverse_deviation = task.in(Role::inverse_deviation);
  const std::size_t channels = mean.size();
  auto count = static_cast<double>(x.size() / channels);
  Values sum(channels, 0.0), product_sum(channels, 0.0);
  const auto normalized = [&](std::size_t i) { return (x[i] - mean[i % channels]) * inverse_deviation[i % channels]; };
  if (task.view.find_read(Role::d_weight)) {
    // Over all samples, of which these are some.
    product_sum = task.in(Role::d_weight);
    sum = task.in(Role::d_bias);
    count *=
        static_cast<double>(normalized_samples(task.view.step().options)) / static_cast<double>(task.view.samples());
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum[i % channels] += dy[i];
      product_sum[i % channels] += dy[i] * normalized(i);
    }
  }
  for (std::size_t nth = 0; nth < task.view.all_written(Role::dx).size(); ++nth) {
    Values& dx = task.out(Role::dx, nth);
    if (task.view.operand(task.view.written(Role::dx, nth)).index == 1) {
      dx = dy;  // of the second input
      continue;
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t c = i % channels;
      const double moved = sum[c] / count + normalized(i) * product_sum[c] / count;
      dx[i] = scale[c] * inverse_deviation[c] * (dy[i] - (keeps_statistics(task.view.layer()) ? 0 : moved));
    }
  }
  if (task.writes(Role::d_weight)) {
    Values &d_scale = task.out(Role::d_weight), &d_shift = task.out(Role::d_bias);
    for (std::size_t c = 0; c < channels; ++c) {
      d_scale[c] += product_sum[c];
      d_shift[c] += sum[c];
    }
  }
}

void run_lrn(const ReferenceTask& task) {
  const auto& options = task.view.options<LrnOptions>();
  const Values& x = task.in(Role::x);
  const std::int64_t channels = task.view.input().channels();
  const double scale = options.alpha / static_cast<double>(options.size);
  const std::size_t rows = x.size() / static_cast<std::size_t>(channels);
  const auto at = [&](std::size_t row, std::int64_t c) {
    return row * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c);
  };
  const auto denominator = [&](std::size_t row, std::int64_t c) {
    double sum = options.k;
    for_each_neighbour(c, options.size, channels,
                       [&](std::int64_t j) { sum += scale * x[at(row, j)] * x[at(row, j)]; });
    return sum;
  };
  if (task.view.is_forward()) {
    Values& y = task.out(Role::y);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::int64_t c = 0; c < channels; ++c)
        y[at(row, c)] = x[at(row, c)] * std::pow(denominator(row, c), -options.beta);
    return;
  }
  const Values& dy = task.in(Role::dy);
  Values& dx = task.out(Role::dx);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::int64_t c = 0; c < channels; ++c) {
      double sum = 0;  // over the channels whose denominators contain x_c
      for_each_neighbour(c, options.size, channels, [&](std::int64_t j) {
        sum += dy[at(row, j)] * x[at(row, j)] * std::pow(denominator(row, j), -options.beta - 1);
      });
      dx[at(row, c)] = dy[at(row, c)] * std::pow(denominator(row, c), -options.beta) -
                       2 * scale * options.beta * x[at(row, c)] * sum;
    }
}

}  // namespace tide::reference
