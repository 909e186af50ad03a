// What the sources of the module share: nanobind with the casters that they use, the library, and one function for each
// part of the module.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <tidepool/tidepool.h>

namespace tide::python {

namespace nb = nanobind;

void bind_networks(nb::module_& module);
void bind_plans(nb::module_& module);
void bind_sessions(nb::module_& module);
void bind_data(nb::module_& module);
void bind_training(nb::module_& module);
void bind_proofs(nb::module_& module);

}  // namespace tide::python
