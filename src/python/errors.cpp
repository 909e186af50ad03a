#include "errors.h"

namespace tide::python {
namespace {

std::string infeasible_text(const PlanResult& result, std::string_view what, const PlannerOptions& options,
                            std::string_view other_ways) {
  const Bytes needed = result.floor[result.short_of];
  const std::optional<Bytes>& budget = options.memory[result.short_of];
  if (result.short_of != Tier::device)
    return fmt::format(
        "{} does not fit: what leaves the device takes {} bytes ({}) of {} memory, and there are {}; give it that, "
        "or more memory",
        what, needed.count(), format_size(needed), tier_name(result.short_of), budget ? format_size(*budget) : "none");
  return fmt::format("{} does not fit into {}: it needs {} bytes ({}), at {}; give it that{}", what,
                     budget ? format_size(*budget) : "memory", needed.count(), format_size(needed),
                     result.bottleneck_task, other_ways);
}

}  // namespace

void bind_errors(nb::module_& module) {
  const nb::exception<Error> error(module, "Error", PyExc_RuntimeError);
  error.attr("__doc__") = "What goes wrong, in one line: what, where, and what to do.";
  nb::object infeasible =
      nb::steal(PyErr_NewExceptionWithDoc("tidepool._tidepool.Infeasible",
                                          "A memory budget is too small. `needed`: the bytes that would do; `task`: "
                                          "which task needs them; `tier`: of which "
                                          "memory.",
                                          error.ptr(), nullptr));
  infeasible.attr("needed") = 0;
  infeasible.attr("task") = "";
  infeasible.attr("tier") = "device";
  module.attr("Infeasible") = infeasible;
}

void raise_infeasible(const PlanResult& result, std::string_view what, const PlannerOptions& options,
                      std::string_view other_ways) {
  const nb::object type = nb::module_::import_("tidepool._tidepool").attr("Infeasible");
  const nb::object raised = type(infeasible_text(result, what, options, other_ways));
  raised.attr("needed") = result.floor[result.short_of].count();
  raised.attr("task") = result.bottleneck_task;
  raised.attr("tier") = std::string(tier_name(result.short_of));
  PyErr_SetObject(type.ptr(), raised.ptr());
  throw nb::python_error();
}

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace tide::python
