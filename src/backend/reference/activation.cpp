// Activations and dropout.
#include <cmath>

#include "backend/reference/task.h"
#include "base/random.h"

namespace tide::reference {

void run_activation(const ReferenceTask& task) {
  const LayerKind kind = task.view.layer_kind();
  if (task.view.is_forward()) {
    const Values& x = task.in(Role::x);
    Values& y = task.out(Role::y);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (kind == LayerKind::relu) y[i] = x[i] > 0 || std::isnan(x[i]) ? x[i] : 0;
      if (kind == LayerKind::sigmoid) y[i] = 1 / (1 + std::exp(-x[i]));
      if (kind == LayerKind::tanh) y[i] = std::tanh(x[i]);
    }
    return;
  }
  const Values &y = task.in(Role::y), &dy = task.in(Role::dy);
  Values& dx = task.out(Role::dx);
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (kind == LayerKind::relu) dx[i] = y[i] > 0 ? dy[i] : 0;
    if (kind == LayerKind::sigmoid) dx[i] = dy[i] * y[i] * (1 - y[i]);
    if (kind == LayerKind::tanh) dx[i] = dy[i] * (1 - y[i] * y[i]);
  }
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
