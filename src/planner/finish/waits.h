// Cross-lane waits: once it is known what stays where, what each op must wait for follows.
#pragma once

#include "plan/plan.h"

namespace tide {

// Fills in Op::waits: for the values an op reads, for readers of what it overwrites, and
// for whoever used its addresses before. As few as will do: what a lane knows already is
// not waited for again.
// REQUIRES: ops and residencies make sense in the plan's total order.
void add_waits(Phase& phase);

}  // namespace tide
