// A session that does nothing by itself: no layers are fused, nothing leaves the device, times are modelled.
#pragma once

#include "support/on_device.h"
#include "train/session_options.h"

namespace tide::test {

inline SessionOptions plain_session() {
  return {.policy = "liveness", .planner = on_device(), .profile = "none", .fuse = false};
}

}  // namespace tide::test
