// Times as they are with a part of the link to the host: for planning beside others that use it too.
#pragma once

#include "cost/model.h"

namespace tide {

class LinkShare final : public CostModel {
 public:
  // `share` of the link's rate, above 0. The model outlives it.
  LinkShare(const CostModel& all, double share) : all_(all), share_(share) {}
  [[nodiscard]] std::string name() const override { return all_.name(); }
  [[nodiscard]] double task_seconds(const Step& step, TaskId task, std::size_t algorithm) const override {
    return all_.task_seconds(step, task, algorithm);
  }
  [[nodiscard]] double copy_seconds(Bytes bytes, Tier from, Tier to) const override {
    const double seconds = all_.copy_seconds(bytes, from, to);
    const std::optional<Route> route = find_route(from, to);
    if (!route || row_of(*route).medium != Medium::link) return seconds;
    const double latency = all_.copy_seconds(Bytes(), from, to);
    return latency + (seconds - latency) / share_;
  }

 private:
  const CostModel& all_;
  double share_;
};

}  // namespace tide
