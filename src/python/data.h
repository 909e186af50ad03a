// Data that the library reads by itself, opened by the words that the program's options have.
#pragma once

#include <mutex>

#include "named_network.h"

namespace tide::python {

struct Data {
  Split split;
  // Files that could not be read, by what was wrong with them. Readers add to it, on threads of their own.
  struct LeftOut {
    std::mutex mutex;
    std::vector<std::string> files;
  };
  std::shared_ptr<LeftOut> left_out = std::make_shared<LeftOut>();
};

}  // namespace tide::python
