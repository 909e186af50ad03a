// The way between device and host memory, at the backend's own speed or slowed down to that
// of a link which the machine does not have.
#pragma once

#include "backend/backend.h"

namespace tide {

class Link {
 public:
  // Above 0, a copy takes at least bytes / `bytes_per_second`, each direction for itself. The
  // time is mostly slept through, so that the core is free for kernels.
  Link(Backend& backend, double bytes_per_second) : backend_(backend), bytes_per_second_(bytes_per_second) {}

  void copy(std::byte* to, const std::byte* from, Bytes bytes) const;

 private:
  Backend& backend_;
  double bytes_per_second_;
};

// Has the calling thread wake from sleeps and waits as soon as the system can: one that mostly
// sleeps would otherwise queue behind those that compute. Where it cannot, nothing changes.
void run_promptly();

}  // namespace tide
