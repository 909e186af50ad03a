// Ranks that are threads of one process: for tests, and for jobs whose devices are all in one machine.
#pragma once

#include "cluster/communicator.h"

namespace tide {

// One for each thread. `hosts`: what the machines are called, by rank, for those who want to pretend; all are on one
// where there are none. Sums are made in the order of the ranks. REQUIRES: size > 0; hosts is empty or has that size.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_thread_ranks(int size,
                                                                           std::vector<std::string> hosts = {});

}  // namespace tide
