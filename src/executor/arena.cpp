#include "executor/arena.h"

namespace tide {

Arena::Arena(Backend& backend, Bytes size, Tier tier)
    : backend_(backend),
      size_(size),
      tier_(tier),
      memory_(tier == Tier::device ? backend.allocate(size) : backend.allocate_host(size)) {}

Arena::~Arena() {
  if (tier_ == Tier::device)
    backend_.release(memory_, size_);
  else
    backend_.release_host(memory_, size_);
}

}  // namespace tide
