// One function per backend, whether this build has it or not; make_backend chooses.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace tide {

[[nodiscard]] std::unique_ptr<Backend> make_null_backend();
[[nodiscard]] std::unique_ptr<Backend> make_reference_backend();
[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend(int threads);
[[nodiscard]] std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options);

}  // namespace tide
