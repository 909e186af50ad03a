#include "planner/search/fusing.h"

namespace tide {

void StepChoice::apply_to(StepOptions& options) const {
  options.fuse_limit = fuse_limit;
  options.part = part;
  if (samples == 0) return;
  (part == Part::whole ? options.sub_batch : options.batch) = samples;
}

std::vector<Bytes> fuse_limits(const std::optional<Bytes>& memory, DataType activations) {
  if (!memory || activations != DataType::f32) return {Bytes()};
  return {Bytes(), Bytes(memory->count() / 3), Bytes(memory->count() / 6)};
}

}  // namespace tide
