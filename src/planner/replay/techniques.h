// SuperNeurons' techniques applied always, as in its Figure 10, whatever the memory: outputs
// of checkpoints leave the device behind their last forward use and come back for the
// backward tasks that need them; everything between checkpoints is dropped and run again.
//
//   conv1 -> relu1 -> lrn1 -> pool1 -> conv2
//   head     `---- segment ------'     head of the next
#pragma once

#include "planner/draft/recorder.h"
#include "planner/replay/recompute.h"

namespace tide {

struct Techniques {
  std::vector<bool> leaves;          // by tensor: goes to host memory between the passes
  std::vector<bool> drops;           // by tensor: dropped between the passes and run again
  std::vector<bool> memory_centric;  // by tensor: dropped anew behind each backward task
  // Prefetch as in section 3.3.1: with the backward task of a checkpoint, what the one
  // before it left, which then stays until it is dead. Otherwise things that left are on the
  // device only for the tasks that read them and while their segment is worked on.
  bool prefetch_previous = false;
};

// The techniques with an empty set of dropped tensors: what leaves are values that live in
// the outputs of layers of these kinds (in-place results included) and are needed again in
// the backward pass.
[[nodiscard]] Techniques offloading(const StepFacts& facts, std::span<const LayerKind> kinds);

// Adds recomputation. Cost-aware plays `memory` and `speed` through and takes speed
// wherever that does not raise the peak.
void add_recomputation(const StepFacts& facts, Recompute recompute, Techniques& techniques);

[[nodiscard]] Draft apply(const StepFacts& facts, const Techniques& techniques);

// By tensor: the tensor that its chain of replays starts from; itself where it is not dropped.
[[nodiscard]] std::vector<TensorId> segment_heads(const StepFacts& facts, const std::vector<bool>& drops);

// The largest sum of data alive at a backward task.
[[nodiscard]] std::int64_t backward_peak(const Step& step, const Draft& draft);

}  // namespace tide
