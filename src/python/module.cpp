// The module tidepool._tidepool: the library as Python sees it. What users call is made of it in python/tidepool/.
#include "bindings.h"
#include "errors.h"

NB_MODULE(_tidepool, module) {
  module.doc() = "Trains neural networks within a device-memory budget: the library below the package tidepool.";
  module.attr("__version__") = TIDE_VERSION;
  tide::python::bind_errors(module);
  tide::python::bind_networks(module);
  tide::python::bind_plans(module);
  tide::python::bind_sessions(module);
  tide::python::bind_data(module);
  tide::python::bind_training(module);
  tide::python::bind_proofs(module);
}
