#include "train/trigger_tuning.h"

#include <algorithm>

namespace tide {

void TriggerTuning::after_step(double seconds) {
  if (done_) return;
  times_.push_back(seconds);
  if (times_.size() < 1 + kMeasured) return;
  const double took = calls_.longest(*std::min_element(times_.begin() + 1, times_.end()));
  times_.clear();
  if (corrections_ > 0) {
    if (took > best_) {
      calls_.go_back();
      return finish();
    }
    ++kept_;
  }
  best_ = took;
  if (corrections_ == kMostCorrections || !calls_.correct()) return finish();
  ++corrections_;
}

void TriggerTuning::finish() {
  done_ = true;
  calls_.finish();
}

}  // namespace tide
