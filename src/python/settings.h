// What Python says about how steps are planned and run, as the library's options: keywords that are called as the
// program's options are.
#pragma once

#include "bindings.h"

namespace tide::python {

struct Settings {
  SessionOptions session;  // without its budgets, which are the target's matter
  std::string device;      // a data sheet's; empty: the backend
  double link_bytes_per_second = 0;

  // What steps are planned for. With budgets filled in.
  [[nodiscard]] std::unique_ptr<Target> target();

 private:
  friend Settings settings_of(const nb::dict& given);
  std::string memory_, host_memory_, disk_memory_;  // empty: none
  bool budgets_are_known_ = false;
};

// Throws an Error that names a word that there is not, or a value that is none of those possible.
[[nodiscard]] Settings settings_of(const nb::dict& given);

}  // namespace tide::python
