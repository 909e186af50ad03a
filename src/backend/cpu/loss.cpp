// Softmax over the channels at every position, and its cross-entropy with the labels. A
// label outside the classes marks a position that does not count.
#include <cmath>

#include "backend/cpu/clones.h"
#include "backend/cpu/exponential.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

struct LossShape {
  Index batch, positions, classes;  // positions: of one sample
  Index labels_per_sample, label_offset;
  double smoothing, weight;
  bool soft, counted;

  [[nodiscard]] Index label(const std::int32_t* labels, Index row) const {
    return labels[row / positions * labels_per_sample + label_offset + row % positions];
  }
  // Of labels that are probabilities.
  [[nodiscard]] const float* wanted(const std::int32_t* labels, Index row) const {
    return reinterpret_cast<const float*>(labels) + row / positions * labels_per_sample + label_offset +
           row % positions * classes;
  }
  // What a position that counts counts for.
  [[nodiscard]] double share(const std::int32_t* labels, Index row) const {
    if (!counted) return 1;
    return static_cast<double>(
        reinterpret_cast<const float*>(labels)[row / positions * labels_per_sample + label_offset + positions]);
  }
};

TIDE_CLONES float maximum(const float* x, Index count) {
  float largest = x[0];
#pragma omp simd reduction(max : largest)
  for (Index c = 0; c < count; ++c) largest = x[c] > largest ? x[c] : largest;
  return largest;
}

TIDE_CLONES double sum(const float* x, Index count) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (Index c = 0; c < count; ++c) total += static_cast<double>(x[c]);
  return total;
}

// y = exp(x - shift), and its sum.
TIDE_CLONES double exponentials(const float* x, float* y, float shift, Index count) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (Index c = 0; c < count; ++c) {
    const float e = exponential(x[c] - shift);
    y[c] = e;
    total += static_cast<double>(e);
  }
  return total;
}

TIDE_CLONES void scale(float* y, float factor, Index count) {
#pragma omp simd
  for (Index c = 0; c < count; ++c) y[c] *= factor;
}

TIDE_CLONES void scaled_difference(const float* y, float* dx, float factor, float target, Index count) {
#pragma omp simd
  for (Index c = 0; c < count; ++c) dx[c] = factor * (y[c] - target);
}

struct Metric {
  double loss = 0, correct = 0;
};

// y may be x.
Metric forward_row(const LossShape& s, const float* x, float* y, Index label) {
  Metric metric;
  const float largest = maximum(x, s.classes);
  const bool counts = label >= 0 && label < s.classes;
  double wanted = 0;  // the mean of x under the target distribution
  if (counts) {
    wanted = (1 - s.smoothing) * static_cast<double>(x[label]);
    if (s.smoothing > 0) wanted += s.smoothing / static_cast<double>(s.classes) * sum(x, s.classes);
    // The first maximum is the answer.
    Index answer = 0;
    while (answer < label && x[answer] != largest) ++answer;
    metric.correct = answer == label && x[label] == largest ? 1 : 0;
  }
  const double total = exponentials(x, y, largest, s.classes);
  scale(y, static_cast<float>(1 / total), s.classes);
  if (counts) metric.loss = s.weight * (static_cast<double>(largest) + std::log(total) - wanted);
  return metric;
}

// The same with wanted probabilities.
Metric forward_soft_row(const LossShape& s, const float* x, float* y, const float* wanted) {
  Metric metric;
  const float largest = maximum(x, s.classes);
  const double rest = s.smoothing / static_cast<double>(s.classes);
  double mean = 0, all = 0;  // of x under the target distribution, and that distribution's sum
  Index answer = 0, likeliest = 0;
  for (Index c = 0; c < s.classes; ++c) {
    const double share = rest + (1 - s.smoothing) * static_cast<double>(wanted[c]);
    mean += share * static_cast<double>(x[c]);
    all += share;
    if (x[c] > x[answer]) answer = c;
    if (wanted[c] > wanted[likeliest]) likeliest = c;
  }
  metric.correct = answer == likeliest ? 1 : 0;
  const double total = exponentials(x, y, largest, s.classes);
  scale(y, static_cast<float>(1 / total), s.classes);
  metric.loss = s.weight * (all * (static_cast<double>(largest) + std::log(total)) - mean);
  return metric;
}

LossShape shape_of(const TaskView& view, std::size_t labels) {
  const auto& options = view.options<SoftmaxOptions>();
  const Shape shape = view.input();
  return {shape.batch(),        shape.positions(),       shape.channels(), view.shape(labels).per_sample(),
          options.label_offset, options.label_smoothing, options.weight,   options.soft,
          options.counted};
}

}  // namespace

Recipe softmax_cross_entropy_recipe(const TaskView& view, const ContextPtr& context) {
  const std::size_t labels = view.read(Role::labels),
                    y = view.is_forward() ? view.written(Role::y) : view.read(Role::y);
  const LossShape s = shape_of(view, labels);
  const Index rows = s.batch * s.positions;
  const int threads = team_for(rows * s.classes, threads_of(context));
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), metric = view.written(Role::metric);
    const bool adds = view.accumulates(metric);
    const Index parts = std::min<Index>(threads, rows);
    const auto kernel = [=](const Launch& launch) {
      auto* sums = reinterpret_cast<Metric*>(launch.workspace);
      parallel_parts(threads, parts, [&](Index part) {
        const Range range = part_of(rows, part, parts);
        Metric total;
        for (Index row = range.begin; row < range.end; ++row) {
          const float* const from = input_of<float>(launch, x) + row * s.classes;
          float* const to = output_of<float>(launch, y) + row * s.classes;
          const auto* const of_batch = input_of<std::int32_t>(launch, labels);
          const Metric one = s.soft ? forward_soft_row(s, from, to, s.wanted(of_batch, row))
                                    : forward_row(s, from, to, s.label(of_batch, row));
          total.loss += one.loss * s.share(of_batch, row);
          total.correct += one.correct;
        }
        sums[part] = total;
      });
      Metric total;
      for (Index part = 0; part < parts; ++part) {
        total.loss += sums[part].loss;
        total.correct += sums[part].correct;
      }
      auto* result = output_of<float>(launch, metric);
      result[0] = static_cast<float>(total.loss) + (adds ? result[0] : 0.0F);
      result[1] = static_cast<float>(total.correct) + (adds ? result[1] : 0.0F);
    };
    return recipe(kernel, Bytes(parts * static_cast<Index>(sizeof(Metric))));
  }
  const std::size_t dx = view.written(Role::dx);
  return recipe([=](const Launch& launch) {
    const auto factor = static_cast<float>(gradient_scale(*launch.state, s.weight, s.positions));
    const auto rest = static_cast<float>(s.smoothing / static_cast<double>(s.classes));
    parallel_ranges(threads, rows, kElementGrain / s.classes + 1, [&](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        const auto* const of_batch = input_of<std::int32_t>(launch, labels);
        const float* from = input_of<float>(launch, y) + row * s.classes;
        float* to = output_of<float>(launch, dx) + row * s.classes;
        if (s.soft) {
          scaled_difference(from, to, factor, rest, s.classes);
          const float* const wanted = s.wanted(of_batch, row);
          const float share = factor * static_cast<float>(1 - s.smoothing);
          for (Index c = 0; c < s.classes; ++c) to[c] -= share * wanted[c];
          continue;
        }
        const Index label = s.label(of_batch, row);
        const bool counts = label >= 0 && label < s.classes;
        const float own = counts ? factor * static_cast<float>(s.share(of_batch, row)) : 0.0F;
        scaled_difference(from, to, own, rest, s.classes);
        if (counts) to[label] -= own * static_cast<float>(1 - s.smoothing);
      }
    });
  });
}

}  // namespace tide::cpu
