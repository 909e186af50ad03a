// Times on a named device, by task, shape and algorithm: a roofline with a matrix rate, a
// plain fp32 rate, a memory rate and the time between two kernels.
//
// Modelled: convolutions by family (convolution.h), fully connected layers as matrix
// products, everything else as one pass over its operands (batch norm and LRN read theirs
// again). Not modelled: caches, kernels that run side by side, clocks that change.
#pragma once

#include "cost/model.h"

namespace tide {

class DeviceModel final : public CostModel {
 public:
  explicit DeviceModel(Device device) : device_(std::move(device)) {}
  [[nodiscard]] std::string name() const override { return device_.name; }
  // Knows the algorithms that annotate_for lists; any other counts as precomputed GEMM.
  [[nodiscard]] double task_seconds(const Step& step, TaskId task, std::size_t algorithm) const override;
  [[nodiscard]] double copy_seconds(Bytes bytes, Tier from, Tier to) const override;

 private:
  Device device_;
};

// Fills in the algorithms of every task as a backend for the device would, the fastest
// first by DeviceModel, equal sets shared. Every convolution has one without a workspace.
// Parameters keep their logical bytes.
// REQUIRES: the step has its network.
void annotate_for(Step& step, const Device& device);

}  // namespace tide
