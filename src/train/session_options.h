// What a job can be told, and the steps that it is made of. These are the defaults of the command line, too: it takes
// them from here.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cluster/communicator.h"
#include "data/dataset.h"
#include "executor/executor.h"
#include "planner/ranks/ranks.h"
#include "train/target.h"

namespace tide {

// One shape of step over the session's parameters.
struct StepVariant {
  std::int64_t batch = 32;
  bool training = true;
  friend auto operator<=>(const StepVariant&, const StepVariant&) = default;
};

// How gradients are summed over ranks.
enum class SumRoad : std::uint8_t {
  automatic,  // on GPUs by NCCL where the build has it, else by the processor
  nccl,       // on GPUs, each rank with one of its own
  host,       // by the processor, through host memory; ranks may share a GPU
};

// The ranks that a job is one of.
struct RankSettings {
  Communicator* communicator = nullptr;  // none: it is alone. Outlives the session
  Communicator* sums_over = nullptr;     // within steps; none: `communicator`
  OpObserver* observer = nullptr;        // of the ops of steps
  SumRoad road = SumRoad::automatic;
  Bytes bucket = RankOptions{}.bucket;
  DataType wire = DataType::f32;  // of gradients on their way to other ranks; or bf16
  bool sync_batch_norm = false;   // batch norm has the statistics of all ranks' samples
  Shard shard = Shard::none;      // what each rank keeps only a part of
  Bytes least_to_shard = RankOptions{}.least_to_shard;
  // Above 0, a power of two: the samples of all ranks are cut into so many equal leaves, and sums over samples follow
  // one binary tree over them, so that any number of ranks that divides it gives the same bits. Has sync_batch_norm.
  std::int64_t leaves = 0;
  // Host memory that this rank lends to those that lend none, which then have a tier of it (share_out_loans()).
  Bytes lend = {};
  // Device memory that it lends to those on its machine that lend none (pair_loans()).
  Bytes lend_device = {};
  // Above 0: how fast the two are taken for, each way. Else host memory as within a machine, or as over a plain network
  // where a lender is on another; and device memory as the link to the host.
  double lent_bytes_per_second = 0, peer_bytes_per_second = 0;
  // Which of the devices that share a link swap what; all ranks agree on it before they plan (rank_swaps.h).
  Stagger stagger = Stagger::none;
  std::optional<Topology> topology = {};  // rank r is its device r; none: as the machines are built

  [[nodiscard]] int count() const { return communicator != nullptr ? communicator->size() : 1; }
  // RankOptions::parts; a global batch is a multiple of them.
  [[nodiscard]] std::int64_t parts() const {
    return leaves > 0 ? leaves : sync_batch_norm && count() > 1 ? count() : 0;
  }
  // Of samples that do not fill whole batches, so many are used.
  [[nodiscard]] std::int64_t usable(std::int64_t samples) const {
    return parts() > 0 ? samples - samples % parts() : samples;
  }
  [[nodiscard]] int rank() const { return communicator != nullptr ? communicator->rank() : 0; }
};

struct SessionOptions {
  std::string backend = "cpu";
  // Deterministic here is more than the backend's: each task has one algorithm, so that all
  // policies and budgets give the same bits.
  int threads = 0;
  Precision precision = Precision::tf32;  // bf16: layer outputs are stored so as well
  bool deterministic = true;
  std::string policy = "auto";
  PlannerOptions planner = {};                 // budgets and techniques
  std::string profile = {};                    // times to plan with (CostRequest), with the executor's link
  std::filesystem::path spill_directory = {};  // for the disk tier; empty: the system's for temporary files
  Rules rules = Rules::minimal;
  bool fuse = true;  // see step/fuse.h; the rules superneurons, which count layers one by one, never do
  std::uint64_t seed = kSeed;
  OptimizerOptions optimizer = {};
  bool keep_results = false;      // of evaluations: what the network answers can be read
  std::optional<Plan> plan = {};  // for the first variant, instead of planning it
  ExecutorOptions executor = {};
  RankSettings ranks = {};
};

// What a variant's step is built from.
[[nodiscard]] StepOptions step_options(const StepVariant& variant, const SessionOptions& options);
// The backend that the options name, with the times to plan with.
[[nodiscard]] std::unique_ptr<Target> make_target(const SessionOptions& options);

}  // namespace tide
