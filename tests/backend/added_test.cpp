// Whether a task adds or writes is part of what makes it: programs are kept and used again for equal tasks, and tasks
// of both kinds have the same shapes.
#include <gtest/gtest.h>

#include "backend/task_runner.h"
#include "network/builder.h"

namespace tide {
namespace {

// Layers of equal shapes with parameters of their own.
NetworkPtr twins() {
  Builder net("twins");
  Value x = net.input({1, 3, 4, 4});
  for (int i = 0; i < 3; ++i)
    x = net.convolution(x, {.channels = 3, .window = Window::square(3, 1, 1), .groups = 1, .bias = true});
  for (int i = 0; i < 4; ++i) x = net.fully_connected(x, {.channels = 4, .bias = true});
  net.softmax_cross_entropy(x);
  return std::make_shared<Network>(std::move(net).build());
}

Step step_of(Backend& backend, StepOptions options) {
  Step step = build_step(twins(), options);
  backend.annotate(step);
  return step;
}

// What the task makes of operands that are full of numbers, all of them.
std::vector<std::vector<float>> made_by(Backend& backend, const Step& step, TaskId task) {
  std::vector<std::vector<float>> values;
  std::vector<std::byte*> memory, seen;
  for (const Operand& operand : step.operands_of(task)) {
    const Bytes bytes = step.storage(step.tensor(operand.tensor).storage).bytes;
    std::vector<float>& all = values.emplace_back(bytes.size() / sizeof(float));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i * 7919 % 101) / 101;
    memory.push_back(backend.allocate(bytes));
    backend.copy(memory.back(), reinterpret_cast<const std::byte*>(all.data()), bytes);
    seen.push_back(memory.back() + step.offset_of(operand).size());
  }
  const Bytes workspace = step.algorithms_of(task).front().workspace;
  std::byte* const scratch = backend.allocate(workspace);
  const StepState state = test::test_state(step);
  backend.prepare(step, task, 0)({seen.data(), scratch, &state});
  backend.release(scratch, workspace);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Bytes bytes = step.storage(step.tensor(step.operands_of(task)[i].tensor).storage).bytes;
    backend.copy(reinterpret_cast<std::byte*>(values[i].data()), memory[i], bytes);
    backend.release(memory[i], bytes);
  }
  return values;
}

TEST(Added, AUsedBackendAddsAndWritesAsAFreshOne) {
  if (test::tested_backend() == nullptr) GTEST_SKIP() << test::no_backend();
  StepOptions adding = test::step_options(2), parts = test::step_options(2), later = parts;
  adding.part = Part::later_round;  // gradients of one tensor each
  parts.ranks.count = 2;            // gradients as parts of one
  later.ranks.count = 2;
  later.part = Part::later_round;
  const auto make = [] {
    return make_backend(TIDE_TESTED_BACKEND, {.threads = 1, .precision = Precision::fp32, .deterministic = true});
  };
  const std::unique_ptr<Backend> used = make();
  int tasks = 0;
  for (const StepOptions& options : {adding, parts, later, test::step_options(2), adding}) {
    const std::unique_ptr<Backend> fresh = make();
    const Step step = step_of(*used, options), same = step_of(*fresh, options);
    for (std::size_t t = 0; t < step.tasks.size(); ++t) {
      if (step.tasks[t].kind != TaskKind::backward_weights) continue;
      EXPECT_EQ(made_by(*used, step, TaskId(t)), made_by(*fresh, same, TaskId(t))) << task_name(step, TaskId(t));
      ++tasks;
    }
  }
  EXPECT_EQ(tasks, 5 * 7);
}

}  // namespace
}  // namespace tide
