// Time that has passed, by the clock that only goes forward.
#pragma once

#include <chrono>

namespace tide {

class Stopwatch {
 public:
  // Since this was made, or restarted.
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void restart() { start_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace tide
