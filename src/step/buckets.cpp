#include "step/buckets.h"

#include <algorithm>
#include <map>

namespace tide {
namespace {

bool is_of_bucket(const Tensor& tensor) {
  const bool can_be = tensor.tensor_class == TensorClass::parameter_gradient ||
                      tensor.tensor_class == TensorClass::parameter ||
                      tensor.tensor_class == TensorClass::optimizer_state;
  return can_be && !tensor.parameter.valid();
}

}  // namespace

std::vector<BucketContent> buckets_of(const Network& network, const RankOptions& options) {
  std::vector<bool> trained(network.parameters.size(), false);
  for (const Layer& layer : network.layers)
    if (!layer.frozen)
      for (const LayerParameter& parameter : layer.parameters) trained[parameter.id.index()] = true;
  const auto bytes = [&](std::size_t p) { return bytes_of(network.parameters[p].shape, DataType::f32); };
  const auto is_sharded = [&](std::size_t p) {
    return options.shard != Shard::none && options.count > 1 && bytes(p) >= options.least_to_shard;
  };
  std::vector<BucketContent> buckets;
  for (const bool sharded : {true, false}) {
    Bytes filled = options.bucket;
    for (std::size_t p = trained.size(); p-- > 0;) {
      if (!trained[p] || is_sharded(p) != sharded) continue;
      if (filled >= options.bucket) {
        buckets.push_back({{}, sharded});
        filled = {};
      }
      buckets.back().parameters.push_back(ParameterId(p));
      filled += bytes(p);
    }
  }
  return buckets;
}

bool is_bucket(const Tensor& tensor) { return is_of_bucket(tensor) && tensor.index >= 0; }
bool is_share(const Tensor& tensor) { return is_of_bucket(tensor) && tensor.index < 0; }
std::int32_t bucket_of(const Tensor& tensor) { return tensor.index < 0 ? -1 - tensor.index : tensor.index; }

void lay_out_buckets(Step& step, const std::function<Bytes(ParameterId)>& bytes) {
  std::map<std::int32_t, Bytes> ends, shares;  // by bucket
  for (View& view : step.views) {
    if (!view.parameter.valid()) continue;
    Bytes& end = ends[view.bucket];
    view.offset = end;
    view.bytes = bytes(view.parameter);
    end += view.bytes.aligned();
  }
  const std::int64_t ranks = step.options.ranks.count;
  const std::vector<BucketContent> contents =
      ends.empty() ? std::vector<BucketContent>() : buckets_of(*step.network, step.options.ranks);
  for (auto& [bucket, end] : ends) {
    if (!contents[static_cast<std::size_t>(bucket)].sharded) continue;
    shares[bucket] = share_of_bucket(end, ranks);
    end = shares[bucket] * ranks;
  }
  for (View& view : step.views)
    if (view.own) view.shape = Shape{shares.at(view.bucket).count() / element_bytes(DataType::f32)};
  for (Tensor& tensor : step.tensors) {
    if (!is_of_bucket(tensor)) continue;
    const Bytes size = is_share(tensor) ? shares.at(bucket_of(tensor)) : ends.at(tensor.index);
    step.storages[tensor.storage.index()].bytes = size;
    tensor.shape = Shape{size.count() / element_bytes(tensor.type)};
  }
}

Bytes share_of_bucket(Bytes bucket, std::int64_t ranks) {
  return Bytes((bucket.count() + ranks - 1) / ranks).aligned();
}

std::vector<ByteRange> gaps_of(const Step& step, TaskId scatter, std::int64_t rank) {
  const auto operands = step.operands_of(scatter);
  const std::int32_t bucket = bucket_of(step.tensor(operands.front().tensor));
  const Bytes share = bytes_of(step, operands.back());
  const Bytes first = share * rank, last = share * (rank + 1);
  std::vector<ByteRange> gaps;
  if (std::ranges::none_of(step.views, [&](const View& view) { return view.bucket == bucket; })) return gaps;
  Bytes end = first;
  const auto leave_out = [&](Bytes until) {
    if (until > end) gaps.push_back({end - first, until - first});
  };
  for (const View& view : step.views) {  // as they lie
    if (view.bucket != bucket || !view.parameter.valid()) continue;
    if (view.offset + view.bytes <= first || view.offset >= last) continue;
    leave_out(std::max(view.offset, first));
    end = std::min(view.offset + view.bytes, last);
  }
  leave_out(last);
  return gaps;
}

ViewId bucket_view(const Step& step, ParameterId parameter) {
  for (std::size_t v = 0; v < step.views.size(); ++v)
    if (step.views[v].parameter == parameter) return ViewId(v);
  return {};
}

}  // namespace tide
