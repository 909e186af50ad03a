// Gradients that are summed over several ranks, in buckets: one tensor that holds the gradients of several parameters
// side by side, each seen by its tasks through a view. Backward tasks write straight into it.
//
// Which parameters share a bucket follows from the network and a size alone, never from a plan: ranks may have
// different plans, and must sum the same things in the same order.
//
// Where state is divided over the ranks (Shard), the parameters of a bucket lie in one tensor in the same way, and each
// rank has one of as many equal shares of it as there are ranks.
#pragma once

#include <functional>

#include "step/step.h"

namespace tide {

// Parameters that are summed together; where they are `sharded`, so is their state.
struct BucketContent {
  std::vector<ParameterId> parameters;
  bool sharded = false;

  friend bool operator==(const BucketContent&, const BucketContent&) = default;
};

// The parameters that are trained, the last first, since their gradients are there first. A bucket ends when it has
// RankOptions::bucket bytes or more, by the parameters' shapes. Those that are sharded come first.
[[nodiscard]] std::vector<BucketContent> buckets_of(const Network& network, const RankOptions& options);

// Lays the buckets of a step out anew where a backend takes other bytes for a parameter than its shape says.
void lay_out_buckets(Step& step, const std::function<Bytes(ParameterId)>& bytes);

// Whether a tensor is a bucket, of gradients or of parameters; whether it is a rank's share of one; and of which.
[[nodiscard]] bool is_bucket(const Tensor& tensor);
[[nodiscard]] bool is_share(const Tensor& tensor);
[[nodiscard]] std::int32_t bucket_of(const Tensor& tensor);
// Tensor::index of a share.
[[nodiscard]] constexpr std::int32_t share_index(std::int32_t bucket) { return -1 - bucket; }

// Of a bucket of so many bytes, which is then as many shares as there are ranks.
[[nodiscard]] Bytes share_of_bucket(Bytes bucket, std::int64_t ranks);

// Some bytes, from the first on.
struct ByteRange {
  Bytes begin, end;

  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
// Of a rank's share of the bucket that a scatter sums: the bytes that belong to no parameter.
[[nodiscard]] std::vector<ByteRange> gaps_of(const Step& step, TaskId scatter, std::int64_t rank);

// The view of a parameter in its bucket; invalid where it is in none.
[[nodiscard]] ViewId bucket_view(const Step& step, ParameterId parameter);

}  // namespace tide
