#include "backend/nccl_collectives.h"

namespace tide {

std::unique_ptr<Collectives> make_nccl_collectives(Backend& /*backend*/, const NcclOptions& /*options*/) {
  throw Error("this build has no NCCL: use --reduce cpu, or build with NCCL and CUDA installed (-DTIDE_NCCL=ON)");
}

bool has_nccl() { return false; }

}  // namespace tide
