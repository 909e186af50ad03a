// How much a task computes and how many bytes it touches, by shape arithmetic.
#pragma once

#include "step/step.h"

namespace tide {

struct Work {
  double flops = 0;
  double bytes = 0;  // read and written once each
};

[[nodiscard]] Work work_of(const Step& step, TaskId task);

}  // namespace tide
