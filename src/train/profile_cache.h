// Measured times without asking for them: what a job's steps need and no earlier run has
// measured is measured once, and kept on disk by backend, device, driver and library versions.
#pragma once

#include <filesystem>
#include <memory>

#include "backend/backend.h"
#include "cost/profile.h"

namespace tide {

// $XDG_CACHE_HOME/tidepool/profile-<number>.json, or below ~/.cache; the number is that of this
// machine and backend. Empty where there is no such folder.
[[nodiscard]] std::filesystem::path profile_cache_path(const Backend& backend);

// Times of the steps it was told to cover; others are modelled. A cache that cannot be read or written
// is done without.
class MeasuredCost final : public CostModel {
 public:
  // The backend outlives it.
  MeasuredCost(Backend& backend, std::filesystem::path cache, double link_bytes_per_second);

  // Measures what is not known yet.
  // REQUIRES: the step was annotated by the backend, has its network, and has results merged as plans have them.
  void cover(const Step& step);

  [[nodiscard]] std::string name() const override { return model_->name(); }
  [[nodiscard]] double task_seconds(const Step& step, TaskId task, std::size_t algorithm) const override {
    return model_->task_seconds(step, task, algorithm);
  }
  [[nodiscard]] double copy_seconds(Bytes bytes, Tier from, Tier to) const override {
    return model_->copy_seconds(bytes, from, to);
  }

 private:
  void save() const;

  Backend& backend_;
  std::filesystem::path cache_;
  double link_bytes_per_second_;
  Profile profile_;
  std::unique_ptr<ProfileModel> model_;  // of profile_
};

}  // namespace tide
