// Optimizers, with the semantics of PyTorch's.
#include <algorithm>
#include <cmath>

#include "backend/reference/task.h"

namespace tide::reference {

void run_norm(const ReferenceTask& task) {
  Values& norm = task.out(Role::norm);
  for (std::size_t p = 0; p < task.view.all_read(Role::gradient).size(); ++p)
    for (const double g : task.in(Role::gradient, p)) norm[0] += g * g;
}

namespace {

void update_one(const ReferenceTask& task, std::size_t nth) {
  const TaskView::TrainedAt at = task.view.trained_at(nth);
  OptimizerOptions options = task.view.step().options.optimizer;
  options.weight_decay *= at.decay;
  const double rate = task.state.learning_rate * at.rate;
  const auto count = static_cast<double>(task.state.update_count);
  const bool has_norm = task.view.find_read(Role::norm).has_value();
  const double clip = has_norm ? std::min(1.0, options.clip_norm / (std::sqrt(task.in(Role::norm)[0]) + 1e-6)) : 1.0;
  const Values &gradient = task.in(Role::gradient, nth), &old_weight = task.in(Role::weight, nth);
  Values& weight = task.out(Role::weight, nth);

  if (options.kind == OptimizerKind::sgd) {
    for (std::size_t i = 0; i < weight.size(); ++i)
      weight[i] = old_weight[i] - rate * (clip * gradient[i] + options.weight_decay * old_weight[i]);
    return;
  }
  const Values& old_first = task.in(Role::first_moment, nth);
  Values& first = task.out(Role::first_moment, nth);
  if (options.kind == OptimizerKind::momentum || options.kind == OptimizerKind::nesterov) {
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const double g = clip * gradient[i] + options.weight_decay * old_weight[i];
      first[i] = options.momentum * old_first[i] + g;
      const double direction = options.kind == OptimizerKind::nesterov ? g + options.momentum * first[i] : first[i];
      weight[i] = old_weight[i] - rate * direction;
    }
    return;
  }
  const Values& old_second = task.in(Role::second_moment, nth);
  Values& second = task.out(Role::second_moment, nth);
  const bool decoupled = options.kind == OptimizerKind::adamw;
  const double correction1 = 1 - std::pow(options.beta1, count);
  const double correction2 = 1 - std::pow(options.beta2, count);
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const double decayed = decoupled ? old_weight[i] * (1 - rate * options.weight_decay) : old_weight[i];
    const double g = clip * gradient[i] + (decoupled ? 0 : options.weight_decay * old_weight[i]);
    first[i] = options.beta1 * old_first[i] + (1 - options.beta1) * g;
    second[i] = options.beta2 * old_second[i] + (1 - options.beta2) * g * g;
    const double deviation = std::sqrt(second[i] / correction2) + options.epsilon;
    weight[i] = decayed - rate * (first[i] / correction1) / deviation;
  }
}

}  // namespace

void run_update(const ReferenceTask& task) {
  for (std::size_t nth = 0; nth < task.view.all_read(Role::gradient).size(); ++nth) update_one(task, nth);
}

}  // namespace tide::reference
