#include "train/session_options.h"

namespace tide {

StepOptions step_options(const StepVariant& variant, const SessionOptions& options) {
  return {.batch = variant.batch,
          .rules = options.rules,
          .training = variant.training,
          .optimizer = options.optimizer,
          .fuse = options.fuse && options.rules == Rules::minimal,
          .activations = activations_of(options.precision),
          // An evaluation takes the other ranks only where they have what it needs.
          .ranks = {.count = variant.training || options.ranks.shard != Shard::none ? options.ranks.count() : 1,
                    .bucket = options.ranks.bucket,
                    .parts = variant.training ? options.ranks.parts() : 0,
                    .shard = options.ranks.shard,
                    .least_to_shard = options.ranks.least_to_shard},
          .keep_results = options.keep_results && !variant.training};
}

std::unique_ptr<Target> make_target(const SessionOptions& options) {
  return std::make_unique<Target>(make_backend(options.backend, {.threads = options.threads,
                                                                 .precision = options.precision,
                                                                 .deterministic = options.deterministic,
                                                                 .one_algorithm = options.deterministic}),
                                  CostRequest{options.profile, options.executor.link_bytes_per_second});
}

}  // namespace tide
