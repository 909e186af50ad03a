// Runs a step task by task on a backend and on the double-precision reference, from the same
// operands.
#pragma once

#include <functional>

#include "backend/task_runner.h"

namespace tide::test {

// The allowed in-place variants: each pair, and any two of them that go together. Updates of many
// parameters have too many pairs for that, and they all go together.
inline std::vector<std::vector<InPlacePair>> in_place_variants(std::span<const InPlacePair> pairs) {
  if (pairs.size() > 12) return {{pairs.begin(), pairs.end()}};
  std::vector<std::vector<InPlacePair>> variants;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    variants.push_back({pairs[i]});
    for (std::size_t j = 0; j < i; ++j)
      if (pairs[i].source != pairs[j].source && pairs[i].target != pairs[j].target)
        variants.push_back({pairs[i], pairs[j]});
  }
  return variants;
}

inline constexpr double kTolerance = 1e-5;  // of floats

// The sums of the first layer, which nearly cancel over many positions.
inline bool is_first_sum(const Task& task) { return task.kind == TaskKind::backward_weights; }

// What ranks do together, where all bring the same to a gathering, and the others nothing to a sum.
inline void bring_the_same(const Step& step, TaskId id, ReferenceInterpreter& values) {
  const auto operands = step.operands_of(id);
  const std::vector<double> own = values.get(operands[0].tensor);
  std::vector<double> all(static_cast<std::size_t>(step.tensor(operands[1].tensor).shape.elements()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = own[i % own.size()];
  values.set(operands[1].tensor, std::move(all));
}

// Compares all that is written, by every algorithm; then the allowed in-place variants, and a
// run at other addresses, must give the same bits.
inline void compare_all_tasks(Backend& backend, Step& built, double tolerance,
                              const std::function<bool(const Task&)>& skip = {}) {
  backend.annotate(built);
  const auto step = std::make_shared<const Step>(built);
  const StepState state = test_state(*step);
  ReferenceInterpreter reference(step);
  fill_inputs(*step, reference);
  TaskRunner runner(backend, *step), shifted(backend, *step, 3);
  for (std::size_t t = 0; t < step->tasks.size(); ++t) {
    const TaskId id(t);
    SCOPED_TRACE(task_name(*step, id));
    if (is_collective(step->task(id).kind)) {
      bring_the_same(*step, id, reference);
      continue;
    }
    if (skip && skip(step->task(id))) {
      reference.run_task(id, state);
      continue;
    }
    std::vector<std::map<std::size_t, std::vector<double>>> results;  // by algorithm
    for (std::size_t a = 0; a < step->algorithms_of(id).size(); ++a) {
      SCOPED_TRACE(step->algorithms_of(id)[a].name);
      results.push_back(runner.run(id, reference, state, {}, a));
      ASSERT_EQ(shifted.run(id, reference, state, {}, a), results[a]) << "depends on addresses";
      for (const std::vector<InPlacePair>& pairs : in_place_variants(step->in_place_of(step->task(id))))
        ASSERT_EQ(runner.run(id, reference, state, pairs, a), results[a])
            << "in place " << pairs[0].source << " -> " << pairs[0].target << " and " << pairs.size() - 1 << " more";
    }
    reference.run_task(id, state);
    for (std::size_t a = 0; a < results.size(); ++a)
      for (const auto& [position, values] : results[a]) {
        const Operand& operand = step->operands_of(id)[position];
        const std::vector<double> expected = shown_of(*step, operand, reference.get_logical(operand.tensor));
        EXPECT_LE(relative_error(values, expected), tolerance)
            << role_name(operand.role) << " of " << step->algorithms_of(id)[a].name;
      }
    round_written(*step, id, reference);
  }
}

// Runs the step on the backend alone: every task twice, and each replay, with the same bits.
// REQUIRES: the backend annotated the step.
inline void expect_equal_replays(Backend& backend, const StepPtr& step) {
  const StepState state = test_state(*step);
  ReferenceInterpreter values(step);  // holds what the backend made
  fill_inputs(*step, values);
  TaskRunner runner(backend, *step), shifted(backend, *step, 5);
  for (std::size_t t = 0; t < step->ordered_tasks; ++t) {
    SCOPED_TRACE(task_name(*step, TaskId(t)));
    const auto results = runner.run(TaskId(t), values, state);
    EXPECT_EQ(shifted.run(TaskId(t), values, state), results) << "differs from run to run";
    for (const auto& [position, numbers] : results)
      values.set_logical(step->operands_of(TaskId(t))[position].tensor, numbers);
    const TaskId replay = step->replay_of[t];
    if (!replay.valid()) continue;
    for (const auto& [position, numbers] : runner.run(replay, values, state))
      EXPECT_EQ(numbers, values.get_logical(step->operands_of(replay)[position].tensor)) << "replay differs";
  }
}

}  // namespace tide::test
