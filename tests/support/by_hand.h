// Plans written by hand for tests of time: tasks that take so many seconds, copies and sums of so many bytes.
#pragma once

#include <string>

#include "cost/model.h"
#include "cost/topology.h"
#include "plan/plan.h"

namespace tide::test {

// Tasks take what they were given; copies `bytes_per_second` and `latency`.
class HandCost final : public CostModel {
 public:
  explicit HandCost(double bytes_per_second, double latency = 0) : rate_(bytes_per_second), latency_(latency) {}
  [[nodiscard]] std::string name() const override { return "by hand"; }
  // The step of a task says how long it takes, in milliseconds.
  [[nodiscard]] double task_seconds(const Step& step, TaskId task, std::size_t /*algorithm*/) const override {
    return 1e-3 * step.task(task).step;
  }
  [[nodiscard]] double copy_seconds(Bytes bytes, Tier /*from*/, Tier /*to*/) const override {
    return latency_ + static_cast<double>(bytes.count()) / rate_;
  }

 private:
  double rate_, latency_;
};

class HandPlan {
 public:
  // Each returns the op's number. `waits` are earlier ops.
  std::int32_t task(const std::string& name, std::int32_t milliseconds, std::vector<std::int32_t> waits = {}) {
    return add_run(TaskKind::forward, name, milliseconds, 1, Lane::compute, std::move(waits));
  }
  std::int32_t reduce(const std::string& name, std::int64_t bytes, std::vector<std::int32_t> waits = {},
                      TaskKind kind = TaskKind::reduce) {
    return add_run(kind, name, 0, bytes, Lane::reduce, std::move(waits));
  }
  std::int32_t out(std::int64_t bytes, std::vector<std::int32_t> waits = {}) {
    return add_copy(bytes, Tier::device, Tier::host, std::move(waits));
  }
  std::int32_t in(std::int64_t bytes, std::vector<std::int32_t> waits = {}) {
    return add_copy(bytes, Tier::host, Tier::device, std::move(waits));
  }
  [[nodiscard]] Plan plan(std::int32_t repeat = 1) const {
    Plan made;
    made.phases.push_back({std::make_shared<const Step>(step_), ops_, {}, repeat});
    return made;
  }

 private:
  TensorId tensor(const std::string& name, std::int64_t bytes) {
    const LayerId layer(step_.layer_names.size());
    step_.layer_names.push_back(name);
    step_.layer_kinds.push_back(LayerKind::relu);
    step_.storages.emplace_back().bytes = Bytes(bytes);
    Tensor& made = step_.tensors.emplace_back();
    made.storage = StorageId(step_.storages.size() - 1);
    made.layer = layer;
    made.shape = Shape{1};
    return TensorId(step_.tensors.size() - 1);
  }
  std::int32_t add_run(TaskKind kind, const std::string& name, std::int32_t milliseconds, std::int64_t bytes, Lane lane,
                       std::vector<std::int32_t> waits) {
    if (step_.algorithm_sets.empty()) step_.algorithm_sets.push_back({{"default", Bytes()}});
    const TensorId id = tensor(name, bytes);
    step_.operands.push_back({.access = Access::write, .tensor = id});
    step_.tasks.push_back({.kind = kind,
                           .layer = step_.tensor(id).layer,
                           .step = milliseconds,
                           .first_operand = static_cast<std::uint32_t>(step_.operands.size() - 1),
                           .operand_count = 1});
    ops_.push_back({.what = Run{.task = TaskId(step_.tasks.size() - 1)}, .lane = lane, .waits = std::move(waits)});
    return static_cast<std::int32_t>(ops_.size() - 1);
  }
  std::int32_t add_copy(std::int64_t bytes, Tier from, Tier to, std::vector<std::int32_t> waits) {
    ops_.push_back(copy_op({step_.tensor(tensor("copied", bytes)).storage, from, to}));
    ops_.back().waits = std::move(waits);
    return static_cast<std::int32_t>(ops_.size() - 1);
  }

  Step step_;
  std::vector<Op> ops_;
};

// One host: so many devices at each switch, every link as fast.
inline Topology plain_topology(const std::vector<std::size_t>& switches, double bytes_per_second,
                               double both_share = 1) {
  const TreeLink link{bytes_per_second, bytes_per_second, both_share, 0};
  HostSlot host{.network = link, .memory_bytes_per_second = 1e12, .peer_to_peer = true, .switches = {}};
  for (const std::size_t devices : switches)
    host.switches.push_back({link, std::vector<DeviceSlot>(devices, DeviceSlot{.link = link})});
  return {"plain", {host}};
}

}  // namespace tide::test
