// Ranks that are processes which MPI connects. Where a build has no MPI, these functions say how to get it (absent/).
// Callers want launch.h.
#pragma once

#include "cluster/communicator.h"

namespace tide {

// All ranks of the job. Calls on more bytes than `largest` are made in pieces, because MPI counts in ints.
[[nodiscard]] std::unique_ptr<Communicator> join_mpi_ranks(std::size_t largest);
// Ends MPI, where it was begun for this communicator, when all ranks are here.
void leave_mpi_ranks(Communicator& communicator);
// Whether mpirun takes Open MPI's options. An Error where there is no MPI.
[[nodiscard]] bool launches_by_open_mpi();

}  // namespace tide
