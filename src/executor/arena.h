// The device or host memory of a job: one allocation, made up front, that every step variant
// of the job works in.
#pragma once

#include "backend/backend.h"
#include "base/tier.h"

namespace tide {

class Arena {
 public:
  // Throws an Error that states the size where there is not so much. REQUIRES: Tier::device or Tier::host.
  Arena(Backend& backend, Bytes size, Tier tier = Tier::device);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] std::byte* at(Bytes address) const { return memory_ + address.size(); }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  Backend& backend_;
  Bytes size_;
  Tier tier_;
  std::byte* memory_;
};

}  // namespace tide
