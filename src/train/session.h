// A training job: a network, its parameters in one arena, and the step variants that work
// on them (training, evaluation, a smaller last batch), each planned within the budget.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cluster/lend.h"
#include "data/dataset.h"
#include "executor/device_loans.h"
#include "executor/executor.h"
#include "memory/spill_file.h"
#include "plan/summary.h"
#include "planner/policy.h"
#include "planner/ranks/link_share.h"
#include "planner/vdnn/swaps.h"
#include "train/session_options.h"
#include "train/trigger_tuning.h"

namespace tide {

// A named array of a checkpoint, in logical order.
struct NamedTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

class Session {
 public:
  // Plans every variant. A budget that is too small is an answer: the result then is that
  // of the variant which does not fit. Throws an Error for everything else. An evaluation that
  // does not fit, but would with fewer samples, is made in pieces. Plans for and works on `target`, or
  // where there is none on one of its own, as the options say. REQUIRES: the target has a backend.
  [[nodiscard]] static std::variant<std::unique_ptr<Session>, PlanResult> open(
      NetworkPtr network, const std::vector<StepVariant>& variants, const SessionOptions& options = {},
      std::unique_ptr<Target> target = nullptr);

  // Runs one step of a variant that open() was given over `samples` of the data. Where the device
  // works by itself, those of the `next` step of the same variant are read meanwhile. With several ranks all of them
  // do so, each with its own samples and with the same rate; what is returned is of these samples alone.
  Executor::Metric run(const StepVariant& variant, const Dataset& data, std::span<const std::int64_t> samples,
                       double learning_rate, std::span<const std::int64_t> next = {});
  // The same where the step is one of several ranks' over a global batch, in which its samples begin at `first`. Of 0
  // samples: they count for nothing, and are there because a step needs some.
  struct GlobalBatch {
    std::int64_t first = 0, samples = 0;
  };
  Executor::Metric run(const StepVariant& variant, const Dataset& data, std::span<const std::int64_t> samples,
                       double learning_rate, std::span<const std::int64_t> next, const GlobalBatch& global);

  // Loss and accuracy over a whole data set, in batches of at most `batch`, each rank its part of them; with the first
  // rank's statistics.
  struct Evaluation {
    double loss = 0;
    std::optional<double> accuracy = {};  // where answers can be right: not of numbers
  };
  // What the network answered to a piece of it: one result for each loss, or for each last layer.
  struct Answers {
    std::span<const std::int64_t> samples;
    std::vector<NamedTensor> results;  // by layer
    std::span<const std::int32_t> labels;
  };
  using AnswerObserver = std::function<void(const Answers&)>;
  // `observer`, where there is one, is told of all of them. REQUIRES: SessionOptions::keep_results then.
  Evaluation evaluate(const Dataset& data, std::int64_t batch, const AnswerObserver& observer = {});
  // What the last run of this variant answered. REQUIRES: it is forward only, and SessionOptions::keep_results.
  [[nodiscard]] std::vector<NamedTensor> results(const StepVariant& variant) const;
  // The variants that evaluate() needs on a rank.
  [[nodiscard]] static std::vector<StepVariant> evaluation_variants(const Dataset& data, std::int64_t batch,
                                                                    const RankSettings& ranks = {});

  [[nodiscard]] const Network& network() const { return *network_; }
  [[nodiscard]] const OptimizerOptions& optimizer() const { return options_.optimizer; }
  [[nodiscard]] Backend& backend() { return *target_->backend(); }
  [[nodiscard]] const Target& target() const { return *target_; }
  [[nodiscard]] const Plan& plan(const StepVariant& variant) const { return find(variant).plan; }
  [[nodiscard]] Executor& executor(const StepVariant& variant) { return *find(variant).executor; }
  [[nodiscard]] const CostModel& cost() const { return costs_.empty() ? target_->cost() : *costs_.back(); }
  // Memory taken, by tier; host and disk are none where no plan moves anything there.
  [[nodiscard]] Bytes arena_bytes() const { return arena_->size(); }
  [[nodiscard]] Bytes host_bytes() const { return host_ ? host_->size() : Bytes(); }
  [[nodiscard]] Bytes disk_bytes() const { return disk_ ? disk_->size() : Bytes(); }
  // What this rank has of others, and others of it.
  [[nodiscard]] Bytes borrowed_bytes() const { return lent_ ? lent_->size() : Bytes(); }
  [[nodiscard]] Bytes lent_bytes() const { return lent_bytes_[Tier::lent]; }
  // The same of device memory.
  [[nodiscard]] Bytes borrowed_device_bytes() const { return Bytes(static_cast<std::int64_t>(peer().size())); }
  [[nodiscard]] Bytes lent_device_bytes() const { return lent_bytes_[Tier::peer]; }
  // For all ranks, behind their last step: whoever borrows gives back, whoever lends waits for that. Without it the
  // destructor does so; it has to be done while the ranks can still talk.
  void end_loans();
  [[nodiscard]] std::uint64_t steps_done() const { return steps_; }
  [[nodiscard]] const RankSettings& ranks() const { return options_.ranks; }
  // How the ranks swap, as they agreed; empty: each by itself.
  [[nodiscard]] const std::string& swaps() const { return swaps_; }
  // What measured steps did to the triggers of its swaps; null: it has none. The plan may change with it.
  [[nodiscard]] const TriggerTuning* tuning() const { return tuning_.get(); }

  // Whether ranks have only shares of the state: what reads all of it is then for all ranks together.
  [[nodiscard]] bool is_sharded() const { return ranks().count() > 1 && ranks().shard != Shard::none; }
  // Parameters and running statistics, in the network's order and in logical order.
  [[nodiscard]] std::vector<float> parameter(ParameterId id) const;
  void set_parameter(ParameterId id, std::span<const float> values);
  // A number that is equal only for equal parameters and statistics, bit for bit.
  [[nodiscard]] std::uint64_t weights_hash() const;

  // Everything a job needs to go on later: parameters, statistics, optimizer state.
  [[nodiscard]] std::vector<NamedTensor> state() const;
  // Throws an Error that names what is missing or has another shape; changes nothing then. Of several ranks, each
  // restores its own.
  void restore(const std::vector<NamedTensor>& state, std::uint64_t steps_done, bool with_optimizer = true);
  // The same by all ranks together, where the first one alone has the state.
  void restore_from_first(const std::vector<NamedTensor>& state, std::uint64_t steps_done);

 private:
  struct Planned {
    Plan plan;
    std::unique_ptr<Executor> executor;
    // What is in the executor's input already.
    const Dataset* loaded_data = nullptr;
    std::vector<std::int64_t> loaded;
    std::int64_t answers = 0;  // that can be right, of what was loaded last
  };

  Session(NetworkPtr network, const SessionOptions& options, std::unique_ptr<Target> target)
      : network_(std::move(network)), options_(options), target_(std::move(target)) {}
  [[nodiscard]] const Planned& find(const StepVariant& variant) const;
  [[nodiscard]] Planned& find(const StepVariant& variant);
  // Through it parameters are read and written.
  [[nodiscard]] Executor& lead() const { return *find(lead_).executor; }
  void load(Planned& planned, const Dataset& data, std::span<const std::int64_t> samples) const;
  // What a checkpoint has an entry for: where it is between steps of the first variant.
  struct StateEntry {
    std::string name;
    ParameterId parameter;
    TensorClass tensor_class = TensorClass::parameter;
    TensorId tensor;  // its own, or that of all parameters of a bucket, or this rank's share of that
    ViewId view;      // in the bucket
  };
  // Buckets that were gathered from all ranks, by class and role, the newest of each.
  using Gathered = std::map<std::pair<TensorClass, Role>, std::pair<TensorId, std::vector<std::byte>>>;
  [[nodiscard]] std::vector<StateEntry> state_entries() const;
  // In logical order. Of a share: for all ranks.
  [[nodiscard]] std::vector<float> read_entry(const StateEntry& entry, Gathered& gathered) const;
  void write_entry(const StateEntry& entry, std::span<const float> values);
  [[nodiscard]] std::vector<std::pair<StateEntry, const NamedTensor*>> match(const std::vector<NamedTensor>& state,
                                                                             bool with_optimizer) const;
  void share_statistics();
  // Ranks sum what lies in their buckets byte by byte. Throws an Error where parameters do not lie alike on all.
  void require_one_layout() const;
  [[nodiscard]] std::int64_t idle_steps(std::int64_t own) const;
  void initialize();
  // A variant's step as the backend runs it.
  [[nodiscard]] Step build(const StepVariant& variant, const StepChoice& choice) const;
  // The result of a variant that does not fit; none where it does, or where all do.
  [[nodiscard]] std::optional<PlanResult> plan_variant(const Policy& policy, const StepVariant& variant,
                                                       PlanningContext& planner);
  [[nodiscard]] std::optional<PlanResult> plan_variants(const Policy& policy, const std::vector<StepVariant>& variants,
                                                        PlanningContext planner);
  [[nodiscard]] std::optional<PlanResult> plan_evaluation(const Policy& policy, std::vector<StepVariant> variants,
                                                          const PlanningContext& planner);
  // What all ranks agree on becomes part of the options.
  void stagger(const std::vector<StepVariant>& variants);
  // The same with other options where the first ones leave something too small.
  [[nodiscard]] std::optional<PlanResult> plan_all(const std::vector<StepVariant>& variants);
  // The batches in which that many samples are evaluated.
  [[nodiscard]] std::vector<std::int64_t> pieces(std::int64_t samples) const;
  // The one that is planned first.
  [[nodiscard]] StepVariant lead_of(const std::vector<StepVariant>& variants) const;
  [[nodiscard]] std::unique_ptr<Collectives> make_collectives();
  // What other ranks lend becomes a tier to plan with.
  void offer_loans();
  // For all ranks: takes of it what its plans need.
  void take_loans(const PerTier<Bytes>& needed);
  // Of a tier that is lent: what `offered` has for this rank is its budget, with the speed of `medium`.
  void take_offer(const std::vector<Loan>& offered, Tier tier, Medium medium, double bytes_per_second);
  [[nodiscard]] std::vector<Loan> cut(const std::vector<Loan>& offered, Tier tier, Bytes needed);
  [[nodiscard]] std::span<std::byte> peer() const {
    return device_loans_ ? device_loans_->borrowed() : std::span<std::byte>();
  }
  // Memory for the largest variant, and an executor for each.
  void allocate();
  [[nodiscard]] std::unique_ptr<Executor> executor_of(const StepVariant& variant, const Plan& plan) const;
  // Where the lead's swaps have triggers, measured steps correct them.
  void start_tuning();
  bool correct_triggers();
  void run_lead_with(Plan plan);

  NetworkPtr network_;
  SessionOptions options_;
  std::unique_ptr<Target> target_;
  std::vector<std::unique_ptr<CostModel>> costs_;  // one over another and the target's, where more is known
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Arena> host_;
  std::unique_ptr<SpillFile> disk_;
  std::vector<Loan> offered_, offered_devices_;  // among all ranks
  Loans loans_;
  std::unique_ptr<BorrowedMemory> lent_;       // of loans_; null: there are none
  std::unique_ptr<DeviceLoans> device_loans_;  // null: there are none
  PerTier<Bytes> lent_bytes_;
  std::unique_ptr<Collectives> collectives_;  // null: there is one rank
  std::map<StepVariant, Planned> variants_;
  // It decides for all where parameters rest: the one whose plan is given, else the largest.
  StepVariant lead_;
  std::int64_t at_once_ = std::numeric_limits<std::int64_t>::max();  // of an evaluation's samples
  bool sends_ahead_ = false;  // there is to be room on the device for a batch beside the plans
  std::uint64_t steps_ = 0;
  std::string swaps_;
  PlanningContext lead_context_;      // that the lead was planned in
  std::optional<Bytes> input_ahead_;  // ExecutorOptions::input_ahead of the lead's
  std::unique_ptr<TriggerTuning> tuning_;
  std::optional<double> whole_step_seconds_;  // of the last one
  TriggerOptions triggers_, triggers_before_;
  Plan plan_before_;
  std::optional<LinkShare> link_share_;  // what plans are made for, where that is not all of the link
};

}  // namespace tide
