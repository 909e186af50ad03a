// Told of every op while it runs, by the thread of its lane; of a phase that a device runs by itself, as a whole.
#pragma once

#include "plan/plan.h"

namespace tide {

class OpObserver {
 public:
  virtual ~OpObserver() = default;
  // Once for each phase, before its first step.
  virtual void on_phase(const Phase& phase) = 0;
  virtual void on_begin(const Phase& phase, std::size_t op) noexcept = 0;
  virtual void on_end(const Phase& phase, std::size_t op) noexcept = 0;
  virtual void on_recorded_begin(const Phase& phase) noexcept = 0;
  virtual void on_recorded_end(const Phase& phase) noexcept = 0;
};

}  // namespace tide
