#include "backend/make.h"

namespace tide {

std::unique_ptr<Backend> make_cpu_backend(int /*threads*/) {
  throw Error("this build has no cpu backend: install libdnnl-dev and configure with -DTIDE_ONEDNN=ON");
}

}  // namespace tide
