#include <algorithm>
#include <cmath>

#include "backend/reference/task.h"

namespace tide::reference {
namespace {

// The wanted probability of class c. A label outside the classes marks a position that
// does not count: no loss, no gradient.
double target(std::int64_t c, std::int64_t label, std::int64_t classes, double smoothing) {
  return smoothing / static_cast<double>(classes) + (c == label ? 1 - smoothing : 0);
}

}  // namespace

void run_softmax_cross_entropy(const ReferenceTask& task) {
  const auto& options = task.view.options<SoftmaxOptions>();
  const Shape shape = task.view.input();
  const Values& labels = task.in(Role::labels);
  const std::int64_t classes = shape.channels(), positions = shape.positions();
  const auto labels_per_sample = static_cast<std::int64_t>(labels.size()) / shape.batch();
  const auto label_of = [&](std::int64_t n, std::int64_t position) {
    return static_cast<std::int64_t>(
        labels[static_cast<std::size_t>(n * labels_per_sample + options.label_offset + position)]);
  };
  const auto at = [&](std::int64_t n, std::int64_t position, std::int64_t c) {
    return static_cast<std::size_t>((n * positions + position) * classes + c);
  };

  if (task.view.is_forward()) {
    const Values& x = task.in(Role::x);
    Values &y = task.out(Role::y), &metric = task.out(Role::metric);
    for (std::int64_t n = 0; n < shape.batch(); ++n)
      for (std::int64_t p = 0; p < positions; ++p) {
        std::int64_t largest = 0;
        for (std::int64_t c = 1; c < classes; ++c)
          if (x[at(n, p, c)] > x[at(n, p, largest)]) largest = c;
        const double maximum = x[at(n, p, largest)];
        double sum = 0;
        for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(x[at(n, p, c)] - maximum);
        const std::int64_t label = label_of(n, p);
        const bool counts = label >= 0 && label < classes;
        for (std::int64_t c = 0; c < classes; ++c) {
          const double log_probability = x[at(n, p, c)] - maximum - std::log(sum);
          y[at(n, p, c)] = std::exp(log_probability);
          if (counts)
            metric[0] -= options.weight * target(c, label, classes, options.label_smoothing) * log_probability;
        }
        metric[1] += label == largest ? 1 : 0;
      }
    return;
  }
  const Values& y = task.in(Role::y);
  Values& dx = task.out(Role::dx);
  const double scale = gradient_scale(task.state, options.weight, positions);
  for (std::int64_t n = 0; n < shape.batch(); ++n)
    for (std::int64_t p = 0; p < positions; ++p) {
      const std::int64_t label = label_of(n, p);
      if (label < 0 || label >= classes) continue;
      for (std::int64_t c = 0; c < classes; ++c)
        dx[at(n, p, c)] = scale * (y[at(n, p, c)] - target(c, label, classes, options.label_smoothing));
    }
}

}  // namespace tide::reference
