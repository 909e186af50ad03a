// How a rank does what all ranks do together: the tasks of kind reduce, scatter and gather.
#pragma once

#include "backend/backend.h"

namespace tide {

class Collectives {
 public:
  virtual ~Collectives() = default;
  [[nodiscard]] virtual int rank() const = 0;
  // A kernel whose operands are in device memory; what is read and what is written may be one. It returns when its work
  // is done, and may be called from any one thread. Of what a scatter gives this rank, bytes between parameters are 0
  // (gaps_of). REQUIRES: the step outlives it.
  [[nodiscard]] virtual Kernel prepare(const Step& step, TaskId task) = 0;

  // Whether they can be part of a recorded step; and one of them, behind prepare() of the same task.
  [[nodiscard]] virtual bool records() const { return false; }
  virtual void record(StepQueue& /*queue*/, std::size_t /*op*/, const Step& step, TaskId task,
                      const Launch& /*launch*/) {
    throw Error("{} cannot be recorded", task_name(step, task));
  }
};

}  // namespace tide
