// Ten updates of one parameter on each backend against a recurrence in double, written
// from PyTorch's documentation.
#include "backend/task_runner.h"
#include "network/builder.h"

namespace tide::test {
namespace {

struct OptimizerCase {
  std::string name;
  OptimizerOptions options;
  bool own_rates = false;  // parameters have factors of their own for rate and decay,
  bool together = false;   // and are updated by one task
  friend std::ostream& operator<<(std::ostream& out, const OptimizerCase& c) { return out << c.name; }
};

OptimizerOptions optimizer(OptimizerKind kind, double weight_decay = 0, double clip_norm = 0) {
  OptimizerOptions options;
  options.kind = kind;
  options.weight_decay = weight_decay;
  options.clip_norm = clip_norm;
  return options;
}

// One number of the parameter, with its state.
struct Recurrence {
  double weight, first = 0, second = 0;

  void update(const OptimizerOptions& o, double gradient, double rate, int count) {
    if (o.kind == OptimizerKind::adamw)
      weight -= rate * o.weight_decay * weight;
    else
      gradient += o.weight_decay * weight;
    if (o.kind == OptimizerKind::sgd) {
      weight -= rate * gradient;
    } else if (o.kind == OptimizerKind::momentum) {
      first = o.momentum * first + gradient;
      weight -= rate * first;
    } else if (o.kind == OptimizerKind::nesterov) {
      first = o.momentum * first + gradient;
      weight -= rate * (gradient + o.momentum * first);
    } else {
      first = o.beta1 * first + (1 - o.beta1) * gradient;
      second = o.beta2 * second + (1 - o.beta2) * gradient * gradient;
      const double mean = first / (1 - std::pow(o.beta1, count)), square = second / (1 - std::pow(o.beta2, count));
      weight -= rate * mean / (std::sqrt(square) + o.epsilon);
    }
  }
};

class OptimizerTest : public testing::TestWithParam<OptimizerCase> {
 protected:
  static Step make_step(const OptimizerCase& entry) {
    Builder net("one layer");
    net.softmax_cross_entropy(net.convolution(net.input({1, 3, 5, 5}), {.channels = 5, .window = Window::square(3)}));
    StepOptions step = step_options(2);
    step.optimizer = entry.options;
    step.fuse = entry.together;
    Network network = std::move(net).build();
    for (std::size_t p = 0; entry.own_rates && p < network.parameters.size(); ++p) {
      network.parameters[p].rate = p == 0 ? 0.25 : 3;
      network.parameters[p].decay = p == 0 ? 2 : 0;
    }
    return build_step(std::make_shared<const Network>(std::move(network)), step);
  }

  static void check(Backend& backend, const OptimizerCase& entry) {
    const OptimizerOptions& options = entry.options;
    Step built = make_step(entry);
    backend.annotate(built);
    const auto step = std::make_shared<const Step>(std::move(built));
    ReferenceInterpreter values(step);  // holds what the backend made, step after step
    fill_inputs(*step, values);
    TaskRunner runner(backend, *step);
    StepState state = test_state(*step);

    // The state starts at zero, as it does in training.
    for (const Storage& storage : step->storages)
      if (storage.tensor_class == TensorClass::optimizer_state)
        values.set(storage.entry, std::vector<double>(values.get(storage.entry).size(), 0.0));
    std::map<std::size_t, std::vector<Recurrence>> expected;  // by storage of the parameter
    for (std::size_t s = 0; s < step->storages.size(); ++s)
      if (step->storages[s].tensor_class == TensorClass::parameter)
        for (const double weight : values.get(step->storages[s].entry)) expected[s].push_back({weight});

    for (int count = 1; count <= 10; ++count) {
      state.update_count = count;
      state.learning_rate = 0.1 / count;
      double squares = 0;  // of all gradients
      for (std::size_t t = 0; t < step->ordered_tasks; ++t) {
        const auto operands = step->operands_of(TaskId(t));
        const TaskKind kind = step->tasks[t].kind;
        const auto results = runner.run(TaskId(t), values, state);
        for (const auto& [position, numbers] : results) values.set_logical(operands[position].tensor, numbers);
        if (kind == TaskKind::norm)
          for (const Operand& operand : operands)
            if (operand.role == Role::gradient)
              for (const double g : values.get(operand.tensor)) squares += g * g;
        if (kind != TaskKind::update) continue;
        const double clip =
            options.clip_norm > 0 ? std::min(1.0, options.clip_norm / (std::sqrt(squares) + 1e-6)) : 1.0;
        std::vector<TensorId> gradients, weights;
        for (const Operand& operand : operands) {
          if (operand.role == Role::gradient) gradients.push_back(operand.tensor);
          if (operand.role == Role::weight && operand.access == Access::read) weights.push_back(operand.tensor);
        }
        ASSERT_EQ(gradients.size(), weights.size());
        for (std::size_t p = 0; p < weights.size(); ++p) {
          const std::vector<double> gradient = values.get(gradients[p]);
          const Parameter& parameter = step->network->parameters[step->tensor(weights[p]).parameter.index()];
          OptimizerOptions own = options;
          own.weight_decay *= parameter.decay;
          std::vector<Recurrence>& numbers = expected[step->tensor(weights[p]).storage.index()];
          std::vector<double> wanted;
          for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i].update(own, clip * gradient[i], state.learning_rate * parameter.rate, count);
            wanted.push_back(numbers[i].weight);
          }
          const TensorId exit = step->storage(step->tensor(weights[p]).storage).exit;
          EXPECT_LE(relative_error(values.get(exit), wanted), 3e-6) << task_name(*step, TaskId(t)) << " " << count;
        }
      }
      values.carry_over();
    }
  }
};

TEST_P(OptimizerTest, OfReferenceFollowsPyTorch) {
  const auto backend = make_backend("reference");
  check(*backend, GetParam());
}

TEST_P(OptimizerTest, OfTestedBackendFollowsPyTorch) {
  const auto backend = tested_backend(1);
  if (backend == nullptr) GTEST_SKIP() << no_backend();
  check(*backend, GetParam());
}

std::vector<OptimizerCase> optimizer_cases() {
  return {{"sgd", optimizer(OptimizerKind::sgd)},
          {"sgd_decay", optimizer(OptimizerKind::sgd, 0.1)},
          {"momentum", optimizer(OptimizerKind::momentum)},
          {"momentum_decay", optimizer(OptimizerKind::momentum, 0.1)},
          {"momentum_clipped", optimizer(OptimizerKind::momentum, 0.01, 0.05)},
          {"momentum_below_clip", optimizer(OptimizerKind::momentum, 0, 1000)},
          {"nesterov", optimizer(OptimizerKind::nesterov)},
          {"nesterov_decay", optimizer(OptimizerKind::nesterov, 0.1)},
          {"adam", optimizer(OptimizerKind::adam)},
          {"adam_decay", optimizer(OptimizerKind::adam, 0.1)},
          {"adamw", optimizer(OptimizerKind::adamw, 0.1)},
          {"adamw_clipped", optimizer(OptimizerKind::adamw, 0.1, 0.05)},
          {"sgd_own_rates", optimizer(OptimizerKind::sgd, 0.1), true},
          {"momentum_own_rates", optimizer(OptimizerKind::momentum, 0.1), true, true},
          {"adam_own_rates", optimizer(OptimizerKind::adam, 0.1), true},
          {"adamw_own_rates", optimizer(OptimizerKind::adamw, 0.1), true, true},
          {"momentum_together", optimizer(OptimizerKind::momentum, 0.1, 0.05), false, true}};
}

INSTANTIATE_TEST_SUITE_P(Cases, OptimizerTest, testing::ValuesIn(optimizer_cases()),
                         [](const auto& entry) { return entry.param.name; });

}  // namespace
}  // namespace tide::test
