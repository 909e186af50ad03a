// How ranks that are processes come to be: started by a launcher (mpirun, srun), they find each other through MPI,
// which is begun only where there are several. A process that nobody launched is alone.
#pragma once

#include <optional>

#include "cluster/communicator.h"

namespace tide {

// What a launcher has told this process.
struct Launched {
  int size = 0;  // 0: it did not say
  int rank = 0;
  std::string launcher;
};
[[nodiscard]] std::optional<Launched> find_launcher();

// The ranks that this process was launched with. Throws an Error that names the remedy where they cannot find each
// other, or where this build has no MPI. `largest`: see mpi_ranks.h.
[[nodiscard]] std::unique_ptr<Communicator> join_ranks(std::size_t largest = std::size_t{1} << 30U);
// At the end of a job that went well, by all ranks. Those that fail just end, and the launcher ends the others.
void leave_ranks(std::unique_ptr<Communicator> communicator);

// The file of this program. Throws an Error where it cannot be told.
[[nodiscard]] std::string program_path();

// The command that starts so many of this program on this machine, each with these arguments: those of main(), with the
// program's name first. An Error where there is no mpirun.
[[nodiscard]] std::vector<std::string> launch_command(int ranks, std::span<char* const> own_arguments);

// The cores that a rank may use, divided among the ranks on its machine; at least one. Of the two, the second asks all
// ranks, and knows when a launcher has given each of them cores of its own.
[[nodiscard]] int threads_for(const LocalRank& local);
[[nodiscard]] int threads_for(Communicator& communicator);

}  // namespace tide
