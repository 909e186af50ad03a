#include "backend/make.h"

namespace tide {

std::unique_ptr<Backend> make_backend(std::string_view name, int threads) {
  if (threads < 0) throw Error("{} threads are not possible; give a positive number, or 0 for all cores", threads);
  if (name == "cpu") return make_cpu_backend(threads);
  if (name == "reference") return make_reference_backend();
  if (name == "null") return make_null_backend();
  throw Error("there is no backend '{}'; choose cpu, reference or null", name);
}

}  // namespace tide
