// What moDNN can be told.
#pragma once

namespace tide {

struct ModnnOptions {
  bool one_lane = false;  // copies out and in take turns
};

}  // namespace tide
