// What the library does where nobody says anything, which is what the command line does then.
#pragma once

#include "train/session_options.h"

namespace tide {

inline const SessionOptions& defaults() {
  static const SessionOptions options;
  return options;
}

}  // namespace tide
