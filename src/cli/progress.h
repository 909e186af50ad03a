// Training as it happens: a bar that redraws itself on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdio>

#include "train/trainer.h"

namespace tide {

class Progress final : public TrainingObserver {
 public:
  // Writes to `stream`; silent without one.
  Progress(std::FILE* stream, bool may_redraw);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void on_step(const StepInfo& info) override;
  void on_epoch(const EpochInfo& info) override;

 private:
  void clear_bar();

  std::FILE* stream_;
  bool terminal_;
  bool bar_shown_ = false;
  std::chrono::steady_clock::time_point last_drawn_{};
};

}  // namespace tide
