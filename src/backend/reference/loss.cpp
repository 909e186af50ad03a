#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "backend/reference/task.h"

namespace tide::reference {
namespace {

// The wanted probability of class c. A label outside the classes marks a position that
// does not count: no loss, no gradient.
double target(std::int64_t c, std::int64_t label, std::int64_t classes, double smoothing) {
  return smoothing / static_cast<double>(classes) + (c == label ? 1 - smoothing : 0);
}

// A label whose bits are those of a float.
double float_of(double label) { return static_cast<double>(std::bit_cast<float>(static_cast<std::int32_t>(label))); }

// The labels of one loss: those of sample n begin at first(n).
struct Labels {
  explicit Labels(const ReferenceTask& task, std::int64_t offset)
      : values(task.in(Role::labels)),
        per_sample(static_cast<std::int64_t>(values.size()) / task.view.input().batch()),
        first(offset) {}
  [[nodiscard]] double at(std::int64_t n, std::int64_t i) const {
    return values[static_cast<std::size_t>(n * per_sample + first + i)];
  }
  const Values& values;
  std::int64_t per_sample, first;
};

// y(x), the loss of (x, target), and its slope from (y, target).
struct ElementLoss {
  std::function<double(double)> answer;
  std::function<double(double, double)> loss, slope;
  std::function<bool(double, double)> correct;
};

void run_element_loss(const ReferenceTask& task, const ElementLoss& kind) {
  const auto& options = task.view.options<ElementLossOptions>();
  const Shape shape = task.view.input();
  const Labels labels(task, options.label_offset);
  const std::int64_t per_sample = shape.per_sample();
  const bool forward = task.view.is_forward();
  const Values& from = forward ? task.in(Role::x) : task.in(Role::y);
  Values& to = forward ? task.out(Role::y) : task.out(Role::dx);
  Values* const metric = forward ? &task.out(Role::metric) : nullptr;
  const double scale = gradient_scale(task.state, options.weight, per_sample);
  for (std::int64_t n = 0; n < shape.batch(); ++n)
    for (std::int64_t i = 0; i < per_sample; ++i) {
      const auto at = static_cast<std::size_t>(n * per_sample + i);
      const double wanted = float_of(labels.at(n, i));
      to[at] = forward ? kind.answer(from[at]) : scale * kind.slope(from[at], wanted);
      if (!forward) continue;
      (*metric)[0] += options.weight * kind.loss(from[at], wanted);
      (*metric)[1] += kind.correct(from[at], wanted) ? 1 : 0;
    }
}

}  // namespace

void run_softmax_cross_entropy(const ReferenceTask& task) {
  const auto& options = task.view.options<SoftmaxOptions>();
  const Shape shape = task.view.input();
  const std::int64_t classes = shape.channels(), positions = shape.positions();
  const Labels labels(task, options.label_offset);
  const auto at = [&](std::int64_t n, std::int64_t position, std::int64_t c) {
    return static_cast<std::size_t>((n * positions + position) * classes + c);
  };
  // How much a position counts, and which probabilities are wanted there.
  const auto share = [&](std::int64_t n, std::int64_t position) {
    if (options.soft) return 1.0;
    const auto label = static_cast<std::int64_t>(labels.at(n, position));
    if (label < 0 || label >= classes) return 0.0;
    return options.counted ? float_of(labels.at(n, positions)) : 1.0;
  };
  const auto wanted = [&](std::int64_t n, std::int64_t position, std::int64_t c) {
    if (!options.soft)
      return target(c, static_cast<std::int64_t>(labels.at(n, position)), classes, options.label_smoothing);
    return options.label_smoothing / static_cast<double>(classes) +
           (1 - options.label_smoothing) * float_of(labels.at(n, position * classes + c));
  };

  if (task.view.is_forward()) {
    const Values& x = task.in(Role::x);
    Values &y = task.out(Role::y), &metric = task.out(Role::metric);
    for (std::int64_t n = 0; n < shape.batch(); ++n)
      for (std::int64_t p = 0; p < positions; ++p) {
        std::int64_t largest = 0, likeliest = 0;
        for (std::int64_t c = 1; c < classes; ++c) {
          if (x[at(n, p, c)] > x[at(n, p, largest)]) largest = c;
          if (wanted(n, p, c) > wanted(n, p, likeliest)) likeliest = c;
        }
        const double maximum = x[at(n, p, largest)];
        double sum = 0;
        for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(x[at(n, p, c)] - maximum);
        const double counts = share(n, p);
        for (std::int64_t c = 0; c < classes; ++c) {
          const double log_probability = x[at(n, p, c)] - maximum - std::log(sum);
          y[at(n, p, c)] = std::exp(log_probability);
          metric[0] -= options.weight * counts * wanted(n, p, c) * log_probability;
        }
        metric[1] += counts > 0 && likeliest == largest ? 1 : 0;
      }
    return;
  }
  const Values& y = task.in(Role::y);
  Values& dx = task.out(Role::dx);
  const double scale = gradient_scale(task.state, options.weight, positions);
  for (std::int64_t n = 0; n < shape.batch(); ++n)
    for (std::int64_t p = 0; p < positions; ++p) {
      const double factor = scale * share(n, p);
      if (factor == 0) continue;
      for (std::int64_t c = 0; c < classes; ++c) dx[at(n, p, c)] = factor * (y[at(n, p, c)] - wanted(n, p, c));
    }
}

void run_sigmoid_cross_entropy(const ReferenceTask& task) {
  run_element_loss(
      task, {.answer = [](double x) { return 1 / (1 + std::exp(-x)); },
             .loss = [](double x,
                        double wanted) { return std::max(x, 0.0) - x * wanted + std::log1p(std::exp(-std::abs(x))); },
             .slope = [](double y, double wanted) { return y - wanted; },
             .correct = [](double x, double wanted) { return (x > 0) == (wanted > 0.5); }});
}

void run_mean_squared_error(const ReferenceTask& task) {
  run_element_loss(task, {.answer = [](double x) { return x; },
                          .loss = [](double x, double wanted) { return (x - wanted) * (x - wanted); },
                          .slope = [](double y, double wanted) { return 2 * (y - wanted); },
                          .correct = [](double, double) { return false; }});
}

}  // namespace tide::reference
