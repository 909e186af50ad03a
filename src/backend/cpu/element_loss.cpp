// Losses that compare element by element; their targets are floats in the 32 bits of labels.
#include <algorithm>
#include <cmath>

#include "backend/cpu/exponential.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

struct ElementMetric {
  double loss = 0, correct = 0;
};

struct Sigmoid {
  static float answer(float x) { return sigmoid(x); }
  static double loss(float x, float wanted) {
    const auto value = static_cast<double>(x);
    return std::max(value, 0.0) - value * static_cast<double>(wanted) + std::log1p(std::exp(-std::abs(value)));
  }
  static float slope(float y, float wanted) { return y - wanted; }
  static bool correct(float x, float wanted) { return (x > 0.0F) == (wanted > 0.5F); }
};

struct Squares {
  static float answer(float x) { return x; }
  static double loss(float x, float wanted) {
    const double difference = static_cast<double>(x) - static_cast<double>(wanted);
    return difference * difference;
  }
  static float slope(float y, float wanted) { return 2.0F * (y - wanted); }
  static bool correct(float /*x*/, float /*wanted*/) { return false; }
};

template <typename Loss>
Recipe element_loss_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<ElementLossOptions>();
  const std::size_t labels = view.read(Role::labels);
  const Index samples = view.input().batch(), per_sample = view.input().per_sample();
  const Index row = view.shape(labels).per_sample(), offset = options.label_offset;
  const double weight = options.weight;
  const int threads = team_for(samples * per_sample, threads_of(context));
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), y = view.written(Role::y), metric = view.written(Role::metric);
    const bool adds = view.accumulates(metric);
    const Index parts = std::min<Index>(threads, samples);
    const auto kernel = [=](const Launch& launch) {
      auto* const sums = reinterpret_cast<ElementMetric*>(launch.workspace);
      parallel_parts(threads, parts, [&](Index part) {
        const Range range = part_of(samples, part, parts);
        ElementMetric total;
        for (Index n = range.begin; n < range.end; ++n) {
          const float* const from = input_of<float>(launch, x) + n * per_sample;
          const float* const wanted = input_of<float>(launch, labels) + n * row + offset;
          float* const to = output_of<float>(launch, y) + n * per_sample;
          for (Index i = 0; i < per_sample; ++i) {
            total.loss += weight * Loss::loss(from[i], wanted[i]);
            total.correct += Loss::correct(from[i], wanted[i]) ? 1 : 0;
            to[i] = Loss::answer(from[i]);
          }
        }
        sums[part] = total;
      });
      ElementMetric total;
      for (Index part = 0; part < parts; ++part) total.loss += sums[part].loss, total.correct += sums[part].correct;
      auto* const result = output_of<float>(launch, metric);
      result[0] = static_cast<float>(total.loss) + (adds ? result[0] : 0.0F);
      result[1] = static_cast<float>(total.correct) + (adds ? result[1] : 0.0F);
    };
    return recipe(kernel, Bytes(parts * static_cast<Index>(sizeof(ElementMetric))));
  }
  const std::size_t y = view.read(Role::y), dx = view.written(Role::dx);
  return recipe([=](const Launch& launch) {
    const auto factor = static_cast<float>(gradient_scale(*launch.state, weight, per_sample));
    parallel_parts(threads, samples, [&](Index n) {
      const float* const answer = input_of<float>(launch, y) + n * per_sample;
      const float* const wanted = input_of<float>(launch, labels) + n * row + offset;
      float* const to = output_of<float>(launch, dx) + n * per_sample;
      for (Index i = 0; i < per_sample; ++i) to[i] = factor * Loss::slope(answer[i], wanted[i]);
    });
  });
}

}  // namespace

Recipe sigmoid_cross_entropy_recipe(const TaskView& view, const ContextPtr& context) {
  return element_loss_recipe<Sigmoid>(view, context);
}
Recipe mean_squared_error_recipe(const TaskView& view, const ContextPtr& context) {
  return element_loss_recipe<Squares>(view, context);
}

}  // namespace tide::cpu
