#include "cluster/communicator.h"

namespace tide {

LocalRank local_rank(const Communicator& communicator) {
  LocalRank local{0, 0};
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (communicator.host(rank) != communicator.host(communicator.rank())) continue;
    if (rank < communicator.rank()) ++local.index;
    ++local.count;
  }
  return local;
}

}  // namespace tide
