#include "backend/make.h"

namespace tide {

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& /*options*/) {
  throw Error(
      "this build has no cuda backend: install the CUDA toolkit and cuDNN 9, and configure with -DTIDE_CUDA=ON");
}

}  // namespace tide
