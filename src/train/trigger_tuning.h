// Corrects triggers over the first steps of a job (planner/ranks/corrections.h): some steps are measured, triggers are
// corrected by what was seen, and the new plan stays where its steps are measured to be not slower. At most a few
// times.
#pragma once

#include <functional>
#include <vector>

namespace tide {

// What it has others do. All ranks do each of these together.
struct TuningCalls {
  std::function<double(double own)> longest;  // of all ranks
  std::function<bool()> correct;              // goes on with corrected triggers; false: no rank has any
  std::function<void()> go_back;              // to what was before the last correction
  std::function<void()> finish;               // nothing more will be changed
};

class TriggerTuning {
 public:
  explicit TriggerTuning(TuningCalls calls) : calls_(std::move(calls)) {}

  // Behind each step of a whole batch, with the time that it took here.
  void after_step(double seconds);

  [[nodiscard]] bool is_done() const { return done_; }
  [[nodiscard]] int corrections() const { return corrections_; }
  [[nodiscard]] int kept() const { return kept_; }

  static constexpr std::size_t kMeasured = 3;  // steps, of which the fastest counts, behind one that warms up
  static constexpr int kMostCorrections = 3;

 private:
  void finish();

  TuningCalls calls_;
  std::vector<double> times_;
  double best_ = 0;
  int corrections_ = 0, kept_ = 0;
  bool done_ = false;
};

}  // namespace tide
