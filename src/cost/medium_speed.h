// Times as they are where one medium has another speed: for what only whoever runs a job knows of it.
#pragma once

#include "cost/model.h"

namespace tide {

class MediumSpeed final : public CostModel {
 public:
  // The model outlives it. REQUIRES: the speed is above 0.
  MediumSpeed(const CostModel& all, Medium medium, double bytes_per_second)
      : all_(all), medium_(medium), bytes_per_second_(bytes_per_second) {}
  [[nodiscard]] std::string name() const override { return all_.name(); }
  [[nodiscard]] double task_seconds(const Step& step, TaskId task, std::size_t algorithm) const override {
    return all_.task_seconds(step, task, algorithm);
  }
  [[nodiscard]] double copy_seconds(Bytes bytes, Tier from, Tier to) const override {
    const std::optional<Route> route = find_route(from, to);
    if (!route || row_of(*route).medium != medium_) return all_.copy_seconds(bytes, from, to);
    return all_.copy_seconds(Bytes(), from, to) + static_cast<double>(bytes.count()) / bytes_per_second_;
  }

 private:
  const CostModel& all_;
  Medium medium_;
  double bytes_per_second_;
};

}  // namespace tide
