// Ranks that are threads of one process: for tests, and for jobs whose devices are all in one machine.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/communicator.h"

namespace tide {

// One for each thread. `hosts`: what the machines are called, by rank, for those who want to pretend; all are on one
// where there are none. Sums are made in the order of the ranks. REQUIRES: size > 0; hosts is empty or has that size.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_thread_ranks(int size,
                                                                           std::vector<std::string> hosts = {});

// Runs a function on each of these, in a thread of its own. Throws what the first rank that failed has thrown; whoever
// waits for it then is interrupted, if `interrupts`.
void on_ranks(std::span<const std::unique_ptr<Communicator>> ranks, const std::function<void(Communicator&)>& function,
              bool interrupts = false);
// On so many new ones, which are interrupted.
void on_thread_ranks(int size, const std::function<void(Communicator&)>& function);

}  // namespace tide
