#include "backend/make.h"

#include <array>

#include "base/names.h"

namespace tide {
namespace {

constexpr std::array<std::string_view, 3> kPrecisionNames{"fp32", "tf32", "bf16"};

}  // namespace

std::string_view precision_name(Precision precision) { return kPrecisionNames[static_cast<std::size_t>(precision)]; }

Precision precision_from_name(std::string_view name) {
  return find_name<Precision>(kPrecisionNames, name, "precision");
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
