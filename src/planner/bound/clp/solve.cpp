// COIN-OR's CLP, through its C interface.
#include <Clp_C_Interface.h>

#include <memory>

#include "planner/bound/linear_program.h"

namespace tide {

std::optional<std::vector<double>> solve(const LinearProgram& program, int iterations) {
  std::vector<int> starts{0}, rows;
  std::vector<double> coefficients;
  for (std::size_t c = 0; c < program.columns(); ++c) {
    for (const LinearProgram::Entry& entry : program.entries(static_cast<LinearProgram::Column>(c))) {
      rows.push_back(entry.row);
      coefficients.push_back(entry.coefficient);
    }
    starts.push_back(static_cast<int>(rows.size()));
  }
  const std::unique_ptr<Clp_Simplex, void (*)(Clp_Simplex*)> model(Clp_newModel(), Clp_deleteModel);
  Clp_setLogLevel(model.get(), 0);
  Clp_loadProblem(model.get(), static_cast<int>(program.columns()), static_cast<int>(program.rows()), starts.data(),
                  rows.data(), coefficients.data(), program.lower().data(), program.upper().data(),
                  program.cost().data(), program.row_lower().data(), program.row_upper().data());
  Clp_setMaximumIterations(model.get(), iterations);
  Clp_initialDualSolve(model.get());
  const double* const duals = Clp_dualRowSolution(model.get());
  return std::vector<double>(duals, duals + program.rows());
}

}  // namespace tide
