// Activations and dropout.
#include <cmath>

#include "backend/reference/task.h"
#include "base/random.h"

namespace tide::reference {

namespace {

// y = function(x); dx = gradient(y, dy).
template <typename Function, typename Gradient>
void run(const ReferenceTask& task, Function function, Gradient gradient) {
  if (task.view.is_forward()) {
    const Values& x = task.in(Role::x);
    Values& y = task.out(Role::y);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = function(x[i]);
    return;
  }
  const Values &y = task.in(Role::y), &dy = task.in(Role::dy);
  Values& dx = task.out(Role::dx);
  for (std::size_t i = 0; i < y.size(); ++i) dx[i] = gradient(y[i], dy[i]);
}

}  // namespace

void run_relu(const ReferenceTask& task) {
  run(
      task, [](double x) { return x > 0 || std::isnan(x) ? x : 0.0; },
      [](double y, double dy) { return y > 0 ? dy : 0.0; });
}

void run_sigmoid(const ReferenceTask& task) {
  run(
      task, [](double x) { return 1 / (1 + std::exp(-x)); }, [](double y, double dy) { return dy * y * (1 - y); });
}

void run_tanh(const ReferenceTask& task) {
  run(
      task, [](double x) { return std::tanh(x); }, [](double y, double dy) { return dy * (1 - y * y); });
}

// Backward is forward with dy for x: the mask is made again from its counters.
void run_dropout(const ReferenceTask& task) {
  const bool forward = task.view.is_forward();
  const Values& from = forward ? task.in(Role::x) : task.in(Role::dy);
  Values& to = forward ? task.out(Role::y) : task.out(Role::dx);
  const double rate = task.view.options<DropoutOptions>().rate;
  const auto layer = task.view.random_stream();
  const auto per_sample = static_cast<std::size_t>(task.view.input().per_sample());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t sample = i / per_sample, element = i % per_sample;
    const Random4 block = random_block(
        task.state.seed, RandomUse::dropout, task.state.step, layer,
        static_cast<std::uint64_t>(task.state.first_sample + task.view.first_sample()) + sample, element / 4);
    const bool keep = to_unit(block[element % 4]) >= static_cast<float>(rate);
    to[i] = keep ? from[i] / (1 - rate) : 0;
  }
}

}  // namespace tide::reference
