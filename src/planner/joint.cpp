#include "planner/joint.h"

#include <algorithm>
#include <limits>

#include "planner/finish.h"
#include "planner/layout.h"
#include "planner/live_profile.h"
#include "planner/techniques.h"

namespace tide {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

// A tensor that the backward pass needs and that can be away in between.
struct Candidate {
  TensorId tensor;
  std::int64_t bytes = 0;
  double drop_seconds = kImpossible;  // to run it again
  double copy_seconds = kImpossible;  // there or back
  std::int32_t last_forward = 0, first_backward = 0;  // positions of its uses around the gap
  std::int32_t needed = 0;  // first_backward, or earlier for what is run again from it
  enum class State : std::uint8_t { kept, dropped, left } state = State::kept;
};

class JointPlanner {
 public:
  JointPlanner(const StepFacts& facts, const CostModel& cost, const PlannerOptions& options, Bytes limit, const Trade& trade,
               const std::vector<bool>& heads)
      : facts_(facts), step_(facts.step()), cost_(cost), options_(options), limit_(limit.count()), trade_(trade), heads_(heads) {
    techniques_.leaves.resize(step_.tensors.size());
    techniques_.drops.resize(step_.tensors.size());
    techniques_.memory_centric.resize(step_.tensors.size());
    choose_algorithms();
    find_candidates();
  }

  std::optional<Draft> plan() {
    if (!descend()) return std::nullopt;
    // Taking back may shift a peak, so descend again; the last state that fits counts.
    for (int round = 0; round < 3; ++round) {
      const std::vector<Candidate> before = candidates_;
      if (!take_back()) break;
      if (!descend()) {
        candidates_ = before;
        play();
        break;
      }
    }
    return std::move(draft_);
  }

 private:
  void choose_algorithms() {
    workspace_.resize(step_.tasks.size());
    seconds_.resize(step_.tasks.size());
    for (std::size_t t = 0; t < step_.tasks.size(); ++t) {
      const std::uint32_t fastest = fastest_algorithm(step_, cost_, TaskId(t));
      seconds_[t] = cost_.task_seconds(step_, TaskId(t), fastest);
      const std::uint32_t planned = trade_.fast_workspaces ? fastest : smallest_algorithm(step_, TaskId(t));
      workspace_[t] = step_.algorithms_of(TaskId(t))[planned].workspace.aligned().count();
    }
    double forward = 0, backward = 0;
    for (std::int32_t t = 0; t < facts_.tasks(); ++t)
      (t < facts_.first_backward() ? forward : backward) += seconds_[static_cast<std::size_t>(t)];
    link_seconds_ = trade_.link_share * std::min(forward, backward);
  }

  [[nodiscard]] bool is_transient(TensorId tensor) const {
    return facts_.producer(tensor).valid() && facts_.last_use(tensor) < facts_.first_backward();
  }

  // What a tensor's replay reads and nobody keeps for the backward pass: it is run again with it.
  template <typename Visit>
  void for_each_transient_source(TensorId tensor, Visit visit) const {
    for (const Operand& operand : step_.operands_of(facts_.replay(tensor)))
      if (operand.access == Access::read && operand.role == Role::x && is_transient(operand.tensor)) visit(operand.tensor);
  }

  // By tensor: what it takes to run it again, with such sources. Tensors are numbered in the
  // order in which they are made.
  [[nodiscard]] std::vector<double> replay_seconds() const {
    std::vector<double> seconds(step_.tensors.size(), kImpossible);
    for (std::size_t t = 0; t < seconds.size(); ++t) {
      if (!facts_.droppable(TensorId(t))) continue;
      seconds[t] = seconds_[facts_.replay(TensorId(t)).index()];
      for_each_transient_source(TensorId(t), [&](TensorId source) { seconds[t] += seconds[source.index()]; });
    }
    return seconds;
  }

  void find_candidates() {
    const std::vector<double> again = replay_seconds();
    for (std::size_t t = 0; t < step_.tensors.size(); ++t) {
      const Tensor& tensor = step_.tensors[t];
      const Storage& storage = step_.storage(tensor.storage);
      const std::int32_t last = facts_.last_use(TensorId(t));
      const bool data = tensor.tensor_class == TensorClass::activation || tensor.tensor_class == TensorClass::saved_state ||
                        (tensor.tensor_class == TensorClass::input && tensor.role == Role::x);
      if (!data || storage.persistent || last == kNever || last < facts_.first_backward()) continue;
      if (storage.bytes < Bytes(kSmallest)) continue;
      Candidate candidate;
      candidate.tensor = TensorId(t);
      candidate.bytes = storage.bytes.aligned().count();
      const auto uses = facts_.uses(TensorId(t));
      const auto turn = std::lower_bound(uses.begin(), uses.end(), facts_.first_backward());
      if (turn == uses.begin() || turn == uses.end()) continue;
      candidate.last_forward = *std::prev(turn);
      candidate.first_backward = candidate.needed = *turn;
      if (options_.recompute != Recompute::none && !heads_[t]) candidate.drop_seconds = again[t];
      if (trade_.link_share > 0 && (!options_.host_memory || !options_.host_memory->is_zero()))
        candidate.copy_seconds = cost_.copy_seconds(storage.bytes, Tier::device, Tier::host);
      if (candidate.drop_seconds < kImpossible || candidate.copy_seconds < kImpossible) candidates_.push_back(candidate);
    }
    const auto per_byte = [](double seconds, const Candidate& c) { return seconds / static_cast<double>(c.bytes); };
    for (std::uint32_t c = 0; c < candidates_.size(); ++c) {
      if (candidates_[c].drop_seconds < kImpossible) drop_order_.push_back(c);
      if (candidates_[c].copy_seconds < kImpossible) leave_order_.push_back(c);
    }
    std::stable_sort(drop_order_.begin(), drop_order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return per_byte(candidates_[a].drop_seconds, candidates_[a]) < per_byte(candidates_[b].drop_seconds, candidates_[b]);
    });
    // The link is for what is dear to run again, the early ones first: they have the most time.
    std::stable_sort(leave_order_.begin(), leave_order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return per_byte(candidates_[a].drop_seconds, candidates_[a]) > per_byte(candidates_[b].drop_seconds, candidates_[b]);
    });
  }

  void mark_drop(TensorId tensor) {
    std::vector<TensorId> pending{tensor};
    while (!pending.empty()) {
      const TensorId next = pending.back();
      pending.pop_back();
      if (techniques_.drops[next.index()]) continue;
      techniques_.drops[next.index()] = true;
      for_each_transient_source(next, [&](TensorId source) { pending.push_back(source); });
    }
  }

  // Carries the decisions out.
  void play() {
    std::fill(techniques_.leaves.begin(), techniques_.leaves.end(), false);
    std::fill(techniques_.drops.begin(), techniques_.drops.end(), false);
    for (const Candidate& candidate : candidates_) {
      if (candidate.state == Candidate::State::dropped) mark_drop(candidate.tensor);
      if (candidate.state == Candidate::State::left) techniques_.leaves[candidate.tensor.index()] = true;
    }
    draft_ = apply(facts_, techniques_);
    op_of_.assign(static_cast<std::size_t>(facts_.tasks()), 0);
    for (std::size_t i = 0; i < draft_.ops.size(); ++i)
      if (draft_.ops[i].kind == OpKind::run && draft_.ops[i].task.index() < op_of_.size())
        op_of_[draft_.ops[i].task.index()] = static_cast<std::int32_t>(i);
    find_needs();
  }

  // When each candidate is needed first, for itself or for what is run again from it.
  void find_needs() {
    std::vector<std::int32_t> needed(step_.tensors.size(), kNever);
    for (std::size_t c = candidates_.size(); c-- > 0;) {
      Candidate& candidate = candidates_[c];
      candidate.needed = std::min(candidate.first_backward, needed[candidate.tensor.index()]);
      if (candidate.state == Candidate::State::dropped) spread_need(candidate.tensor, candidate.needed, needed);
    }
  }
  void spread_need(TensorId tensor, std::int32_t position, std::vector<std::int32_t>& needed) const {
    std::vector<TensorId> pending{tensor};
    while (!pending.empty()) {
      const TensorId next = pending.back();
      pending.pop_back();
      for (const Operand& operand : step_.operands_of(facts_.replay(next))) {
        if (operand.access != Access::read || operand.role != Role::x) continue;
        auto& source = needed[operand.tensor.index()];
        if (source <= position) continue;
        source = position;
        if (is_transient(operand.tensor)) pending.push_back(operand.tensor);
      }
    }
  }

  [[nodiscard]] LiveProfile profile() const {
    std::vector<std::int64_t> live(draft_.ops.size() + 1, 0);
    for (const DraftStay& stay : draft_.stays) {
      if (stay.tier != Tier::device) continue;
      const std::int64_t bytes = step_.storage(stay.storage).bytes.aligned().count();
      live[static_cast<std::size_t>(std::max(stay.first, 0))] += bytes;
      live[std::min(static_cast<std::size_t>(stay.last + 1), draft_.ops.size())] -= bytes;
    }
    for (std::size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
    live.pop_back();
    for (std::size_t i = 0; i < live.size(); ++i)
      if (draft_.ops[i].kind == OpKind::run) live[i] += workspace_[draft_.ops[i].task.index()];
    return LiveProfile(live);
  }

  // The ops during which a candidate would be away.
  struct Gap {
    std::int32_t first, last;
    [[nodiscard]] bool covers(std::int32_t op) const { return first <= op && op <= last; }
  };
  [[nodiscard]] Gap gap_of(const Candidate& candidate) const {
    return {op_of_[static_cast<std::size_t>(candidate.last_forward)] + 1,
            op_of_[static_cast<std::size_t>(candidate.needed)] - 1};
  }

  // Decides until everything fits. False where nothing more can be done about a peak.
  bool descend() {
    constexpr int kRounds = 12;
    for (int round = 0; round < kRounds; ++round) {
      play();
      LiveProfile live = profile();
      if (live.peak() <= limit_) return true;
      if (!lower(live)) return false;
    }
    return false;
  }

  bool lower(LiveProfile& live) {
    std::int32_t at = -1;
    std::size_t drop = 0, leave = 0;
    bool decided = false;
    while (live.peak() > limit_) {
      if (live.peak_at() != at) {
        at = live.peak_at();
        drop = leave = 0;
      }
      const auto advance = [&](const std::vector<std::uint32_t>& order, std::size_t& next) {
        while (next < order.size() && (candidates_[order[next]].state != Candidate::State::kept ||
                                       !gap_of(candidates_[order[next]]).covers(at)))
          ++next;
        return next < order.size() ? &candidates_[order[next]] : nullptr;
      };
      Candidate* const dropped = advance(drop_order_, drop);
      Candidate* const left = advance(leave_order_, leave);
      // Nobody can go; what the last decisions bring must be seen first.
      if (dropped == nullptr && left == nullptr) return decided;
      const double drop_price = dropped != nullptr ? dropped->drop_seconds / static_cast<double>(dropped->bytes) : kImpossible;
      const double leave_price = left != nullptr ? leave_cost(*left) / static_cast<double>(left->bytes) : kImpossible;
      Candidate& chosen = leave_price < drop_price ? *left : *dropped;
      if (leave_price < drop_price) {
        chosen.state = Candidate::State::left;
        used_link_ += chosen.copy_seconds;
      } else {
        chosen.state = Candidate::State::dropped;
      }
      decided = true;
      live.add(gap_of(chosen).first, gap_of(chosen).last, -chosen.bytes);
    }
    return true;
  }

  [[nodiscard]] double leave_cost(const Candidate& candidate) const {
    const bool hidden = used_link_ + candidate.copy_seconds <= link_seconds_;
    return candidate.copy_seconds * (hidden ? trade_.hidden_cost : 1);
  }

  // Takes back the dearest decisions that are not needed. True where there were such.
  bool take_back() {
    LiveProfile live = profile();
    std::vector<Candidate*> order;
    for (Candidate& candidate : candidates_)
      if (candidate.state != Candidate::State::kept) order.push_back(&candidate);
    const auto cost = [&](const Candidate* c) {
      return c->state == Candidate::State::dropped ? c->drop_seconds : c->copy_seconds * trade_.hidden_cost;
    };
    std::stable_sort(order.begin(), order.end(), [&](const Candidate* a, const Candidate* b) { return cost(a) > cost(b); });
    bool any = false;
    for (Candidate* const candidate : order) {
      const Gap gap = gap_of(*candidate);
      live.add(gap.first, gap.last, candidate->bytes);
      if (live.peak() > limit_) {
        live.add(gap.first, gap.last, -candidate->bytes);
        continue;
      }
      if (candidate->state == Candidate::State::left) used_link_ -= candidate->copy_seconds;
      candidate->state = Candidate::State::kept;
      any = true;
    }
    return any;
  }

  static constexpr std::int64_t kSmallest = 4096;  // not worth a decision

  const StepFacts& facts_;
  const Step& step_;
  const CostModel& cost_;
  const PlannerOptions& options_;
  std::int64_t limit_;
  Trade trade_;
  const std::vector<bool>& heads_;
  double link_seconds_ = 0, used_link_ = 0;
  std::vector<double> seconds_;            // by task
  std::vector<std::int64_t> workspace_;    // by task
  std::vector<Candidate> candidates_;      // in the order in which they are made
  std::vector<std::uint32_t> drop_order_, leave_order_;
  Techniques techniques_;
  Draft draft_;
  std::vector<std::int32_t> op_of_;  // by ordered task: its op in the draft
};

}  // namespace

std::optional<Draft> plan_jointly(const StepFacts& facts, const CostModel& cost, const PlannerOptions& options, Bytes limit,
                                  const Trade& trade, const std::vector<bool>& heads) {
  return JointPlanner(facts, cost, options, limit, trade, heads).plan();
}

}  // namespace tide
