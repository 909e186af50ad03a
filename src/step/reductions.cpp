// Gradients of several ranks: made in buckets, summed over the ranks bucket by bucket, in the same order on all of
// them whatever else their steps do.
#include "step/assembler.h"
#include "step/buckets.h"

namespace tide {

void StepAssembler::make_buckets() {
  parameters_.resize(network_->parameters.size());
  const RankOptions& ranks = step_.options.ranks;
  for (BucketContent& content : buckets_of(*network_, ranks)) {
    Bucket bucket;
    for (const ParameterId id : content.parameters) {
      const Shape& shape = network_->parameters[id.index()].shape;
      const Bytes bytes = bytes_of(shape, DataType::f32);
      step_.views.push_back({.shape = shape,
                             .order = MemoryOrder::row_major(shape.rank()),
                             .offset = bucket.bytes,
                             .bucket = static_cast<std::int32_t>(buckets_.size()),
                             .parameter = id,
                             .bytes = bytes});
      parameters_[id.index()].view = ViewId(step_.views.size() - 1);
      parameters_[id.index()].bucket = buckets_.size();
      bucket.bytes += bytes.aligned();
    }
    bucket.sharded = content.sharded;
    if (bucket.sharded) bucket.bytes = share_of_bucket(bucket.bytes, ranks.count) * ranks.count;
    bucket.missing = content.parameters.size();
    bucket.parameters = std::move(content.parameters);
    buckets_.push_back(std::move(bucket));
  }
}

void StepAssembler::make_bucket_tensor(Bucket& bucket) {
  const Shape shape{bucket.bytes.count() / element_bytes(DataType::f32)};
  bucket.tensor = new_tensor(TensorClass::parameter_gradient, shape, LayerId(), Role::gradient, number_of(bucket));
  for (const ParameterId id : bucket.parameters) parameters_[id.index()].gradient = bucket.tensor;
}

NewOperand StepAssembler::bucket_part(ParameterId parameter, Role role) {
  ParameterState& state = parameters_[parameter.index()];
  Bucket& bucket = buckets_[state.bucket];
  if (!bucket.tensor.valid()) make_bucket_tensor(bucket);
  // Several parts of one task begin it together.
  const std::size_t task = step_.tasks.size() + 1;
  if (bucket.begun_by == 0) bucket.begun_by = task;
  const Access access = state.written ? Access::add : bucket.begun_by == task ? Access::write : Access::accumulate;
  state.written = true;
  return {role, bucket.tensor, access, 0, state.view};
}

void StepAssembler::complete(ParameterId parameter) {
  --buckets_[parameters_[parameter.index()].bucket].missing;
  while (reduced_ < buckets_.size() && buckets_[reduced_].missing == 0) {
    reduce(buckets_[reduced_]);
    const bool early = !step_.options.ranks.late_updates && step_.options.optimizer.clip_norm == 0;
    if (early) update_reduced(reduced_ - 1, TensorId());
  }
}

void StepAssembler::reduce(Bucket& bucket) {
  ++reduced_;
  if (bucket.sharded) return scatter(bucket);
  const TensorId own = bucket.tensor;
  bucket.tensor = successor(own);
  new_task(TaskKind::reduce, parameters_[bucket.parameters.back().index()].layer, 0,
           {{Role::gradient, own}, {Role::gradient, bucket.tensor, Access::write}});
  declare_in_place();
  for (const ParameterId id : bucket.parameters) parameters_[id.index()].gradient = bucket.tensor;
}

void StepAssembler::update_reduced(std::size_t buckets, TensorId norm) {
  for (; updated_ < buckets; ++updated_) {
    Bucket& bucket = buckets_[updated_];
    if (bucket.sharded)
      update_share(bucket, norm);
    else
      for (const ParameterId id : bucket.parameters) update(id, norm);
  }
  if (updated_ < buckets_.size()) return;
  update_together(norm);
  gather_updated();
}

}  // namespace tide
