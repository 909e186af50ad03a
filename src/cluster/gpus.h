// Which of a machine's GPUs each of its ranks has.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cluster/communicator.h"

namespace tide {

// The environment variable by which CUDA is told which GPUs there are for a process, and in which order.
constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";

// Those of this process, by that variable or else all of the machine's; in its form, "0,1,2". Empty: none, or nobody
// knows.
[[nodiscard]] std::string visible_gpus();

// What a rank of a machine should see: its own GPU first, and behind it the others that it may use, whose memory it can
// reach so. `lists` has what each rank of the machine may use; the ranks that were given the same GPUs take them in
// turn. A launcher that has given each a GPU of its own is not contradicted. Empty: this rank was given none.
[[nodiscard]] std::string own_gpu_first(std::span<const std::string> lists, int own);

// Of what every rank brings, by rank, what those bring that are on this rank's machine.
[[nodiscard]] std::vector<std::string> of_this_host(const Communicator& communicator,
                                                    std::span<const std::string> by_rank);

}  // namespace tide
