// Sums over ranks that the GPUs make themselves, by NCCL. Where a build has none, the Error says how to get it.
#pragma once

#include <functional>

#include "backend/collectives.h"

namespace tide {

struct NcclOptions {
  int rank = 0, ranks = 1;
  // The same bits from run to run: no sums inside switches (NVLS), one algorithm.
  bool deterministic = true;
  // Hands what rank 0 has in it to all others. For all ranks.
  std::function<void(std::span<std::byte>)> hand_out;
};

// By all ranks, each with a device of its own. `backend` is a cuda backend and outlives it.
[[nodiscard]] std::unique_ptr<Collectives> make_nccl_collectives(Backend& backend, const NcclOptions& options);

[[nodiscard]] bool has_nccl();

}  // namespace tide
