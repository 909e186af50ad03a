// How what goes wrong reaches Python: an Error as tidepool.Error, a budget that is too small as tidepool.Infeasible.
#pragma once

#include "bindings.h"

namespace tide::python {

void bind_errors(nb::module_& module);

// Throws tidepool.Infeasible with the program's sentence, and with `needed`, `task` and `tier`.
[[noreturn]] void raise_infeasible(const PlanResult& result, std::string_view what, const PlannerOptions& options,
                                   std::string_view other_ways = ", use a smaller batch, or try tidepool.compare()");

// Throws what Python has to say meanwhile, such as KeyboardInterrupt. REQUIRES: the GIL.
void check_signals();

}  // namespace tide::python
