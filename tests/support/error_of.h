#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace tide::test {

// What an Error says; nothing where there was none.
inline std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tide::test
