#include "backend/make.h"

namespace tide {

std::string_view precision_name(Precision precision) {
  switch (precision) {
    case Precision::fp32: return "fp32";
    case Precision::tf32: return "tf32";
    case Precision::bf16: return "bf16";
  }
  return "";
}

Precision precision_from_name(std::string_view name) {
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16})
    if (precision_name(precision) == name) return precision;
  throw Error("unknown precision '{}'; there is fp32, tf32 and bf16", name);
}

std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options) {
  if (options.threads < 0)
    throw Error("{} threads are not possible; give a positive number, or 0 for all cores", options.threads);
  if (name == "cpu") return make_cpu_backend(options.threads);
  if (name == "cuda") return make_cuda_backend(options);
  if (name == "reference") return make_reference_backend();
  if (name == "null") return make_null_backend();
  throw Error("there is no backend '{}'; choose cpu, cuda, reference or null", name);
}

std::unique_ptr<Backend> make_backend(std::string_view name, int threads) {
  BackendOptions options;
  options.threads = threads;
  return make_backend(name, options);
}

}  // namespace tide
