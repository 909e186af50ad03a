// The device memory of a job: one allocation, made up front, that every step variant of
// the job works in. Keeps the high-water mark of what was really handed out.
#pragma once

#include "backend/backend.h"

namespace tide {

class Arena {
 public:
  // Throws an Error that states the size where the device does not have it.
  Arena(Backend& backend, Bytes size);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] std::byte* at(Bytes address) const { return memory_ + address.size(); }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  Backend& backend_;
  Bytes size_;
  std::byte* memory_;
};

}  // namespace tide
