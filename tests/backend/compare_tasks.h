// Runs a step task by task on a backend and on the double-precision reference, from the same
// operands.
#pragma once

#include "backend/task_runner.h"

namespace tide::test {

// Compares all that is written, by every algorithm; then each allowed in-place variant, and a
// run at other addresses, must give the same bits.
inline void compare_all_tasks(Backend& backend, Step& built, double tolerance, bool (*skip)(const Task&) = nullptr) {
  backend.annotate(built);
  const auto step = std::make_shared<const Step>(built);
  const StepState state = test_state(*step);
  ReferenceInterpreter reference(step);
  fill_inputs(*step, reference);
  TaskRunner runner(backend, *step), shifted(backend, *step, 3);
  for (std::size_t t = 0; t < step->tasks.size(); ++t) {
    const TaskId id(t);
    SCOPED_TRACE(task_name(*step, id));
    if (skip != nullptr && skip(step->task(id))) {
      reference.run_task(id, state);
      continue;
    }
    std::vector<std::map<std::size_t, std::vector<double>>> results;  // by algorithm
    for (std::size_t a = 0; a < step->algorithms_of(id).size(); ++a) {
      SCOPED_TRACE(step->algorithms_of(id)[a].name);
      results.push_back(runner.run(id, reference, state, nullptr, a));
      ASSERT_EQ(shifted.run(id, reference, state, nullptr, a), results[a]) << "depends on addresses";
      for (const InPlacePair& pair : step->task(id).in_place)
        ASSERT_EQ(runner.run(id, reference, state, &pair, a), results[a])
            << "in place " << pair.source << " -> " << pair.target;
    }
    reference.run_task(id, state);
    for (std::size_t a = 0; a < results.size(); ++a)
      for (const auto& [position, values] : results[a]) {
        const Operand& operand = step->operands_of(id)[position];
        EXPECT_LE(relative_error(values, reference.get_logical(operand.tensor)), tolerance)
            << role_name(operand.role) << " of " << step->algorithms_of(id)[a].name;
      }
    round_written(*step, id, reference);
  }
}

}  // namespace tide::test
