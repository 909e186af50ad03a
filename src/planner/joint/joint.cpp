#include "planner/joint/joint.h"

#include <algorithm>
#include <limits>

#include "cost/algorithms.h"
#include "planner/draft/max_tree.h"
#include "planner/finish/finish.h"
#include "planner/joint/absence.h"
#include "planner/leaving.h"
#include "planner/policies/superneurons.h"

namespace tide {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

}  // namespace

class JointChain::Planner {
 public:
  Planner(const StepFacts& facts, const CostModel& cost, const PlanningContext& context, const Trade& trade,
          const std::vector<bool>& heads)
      : facts_(facts),
        step_(facts.step()),
        cost_(cost),
        context_(context),
        trade_(trade),
        heads_(heads),
        replays_(facts),
        absences_(step_.tensors.size()) {
    choose_algorithms();
    find_candidates();
  }

  std::optional<Draft> down_to(Bytes limit) {
    limit_ = limit.count();
    if (fails_ || (fails_ = !descend())) return std::nullopt;
    // Taking back may shift a peak, so descend again; the last state that fits counts.
    for (int round = 0; round < 3; ++round) {
      const Absences before = absences_;
      if (!take_back()) break;
      if (!descend()) {
        absences_ = before;
        fails_ = !replay_step();
        break;
      }
    }
    if (fails_) return std::nullopt;
    return played_.draft;
  }

 private:
  // A value that can be away while nobody uses it.
  struct Candidate {
    std::int64_t bytes = 0;
    double drop_seconds = kImpossible;  // to run it again
    double copy_seconds = kImpossible;  // there or back
    std::int32_t turn = -1;             // its last use in the forward pass, where the backward pass needs it too
  };

  void choose_algorithms() {
    workspace_.resize(step_.tasks.size());
    seconds_.resize(step_.tasks.size());
    for (std::size_t t = 0; t < step_.tasks.size(); ++t) {
      const std::uint32_t fastest = fastest_algorithm(step_, cost_, TaskId(t));
      seconds_[t] = compute_seconds(step_, cost_, TaskId(t), fastest);
      const std::uint32_t planned = trade_.fast_workspaces ? fastest : smallest_algorithm(step_, TaskId(t));
      workspace_[t] = step_.algorithms_of(TaskId(t))[planned].workspace.aligned().count();
    }
    double forward = 0, backward = 0;
    for (std::int32_t t = 0; t < facts_.tasks(); ++t)
      (t < facts_.first_backward() ? forward : backward) += seconds_[static_cast<std::size_t>(t)];
    link_seconds_ = trade_.link_share * std::min(forward, backward);
  }

  // By tensor: what it takes to run it again, with the sources that nobody keeps for the backward pass. Tensors are
  // numbered in the order in which they are made.
  [[nodiscard]] std::vector<double> replay_seconds() const {
    std::vector<double> seconds(step_.tensors.size(), kImpossible);
    for (std::size_t t = 0; t < seconds.size(); ++t) {
      if (!facts_.droppable(TensorId(t))) continue;
      const TaskId again = facts_.replay(TensorId(t));
      seconds[t] = seconds_[again.index()];
      for (const Operand& operand : step_.operands_of(again)) {
        const bool transient =
            facts_.producer(operand.tensor).valid() && facts_.last_use(operand.tensor) < facts_.first_backward();
        if (operand.access == Access::read && operand.role == Role::x && transient)
          seconds[t] += seconds[operand.tensor.index()];
      }
    }
    return seconds;
  }

  void find_candidates() {
    const std::vector<double> again = replay_seconds();
    const bool copies = trade_.link_share > 0 && can_leave(context_);
    candidates_.resize(step_.tensors.size());
    for (std::size_t t = 0; t < step_.tensors.size(); ++t) {
      const Tensor& tensor = step_.tensors[t];
      const Storage& storage = step_.storage(tensor.storage);
      const bool data = tensor.tensor_class == TensorClass::activation ||
                        tensor.tensor_class == TensorClass::saved_state ||
                        tensor.tensor_class == TensorClass::activation_gradient ||
                        (tensor.tensor_class == TensorClass::input && tensor.role == Role::x);
      if (!data || storage.persistent || storage.bytes < Bytes(kSmallest)) continue;
      Candidate& candidate = candidates_[t];
      candidate.bytes = storage.bytes.aligned().count();
      const auto uses = facts_.uses(TensorId(t));
      const auto turn = std::lower_bound(uses.begin(), uses.end(), facts_.first_backward());
      if (turn != uses.begin() && turn != uses.end()) candidate.turn = *std::prev(turn);
      if (context_.policy.get<SuperneuronsOptions>().recompute != Recompute::none && !heads_[t])
        candidate.drop_seconds = again[t];
      if (copies) candidate.copy_seconds = seconds_to_leave(cost_, context_, storage.bytes);
    }
  }
  [[nodiscard]] const Candidate& candidate(const IdleSpan& span) const { return candidates_[span.tensor.index()]; }

  [[nodiscard]] MaxTree profile() const {
    const Draft& draft = played_.draft;
    std::vector<std::int64_t> live = alive_on_device(step_, draft, false);
    for (std::size_t i = 0; i < live.size(); ++i)
      if (draft.ops[i].is_run()) live[i] += workspace_[draft.ops[i].run().task.index()];
    return MaxTree(live);
  }
  // Adds to the ops of a span.
  static void add(MaxTree& live, const IdleSpan& span, std::int64_t bytes) {
    live.add(static_cast<std::size_t>(std::max(span.first, 0)), static_cast<std::size_t>(std::max(span.last + 1, 0)),
             bytes);
  }

  // Plays the step with the decisions so far. False where that runs too much again.
  bool replay_step() {
    constexpr std::size_t kMostOps = 3;  // times the step's tasks
    std::optional<Played> played = play(facts_, replays_, absences_, kMostOps * step_.ordered_tasks);
    if (played) played_ = std::move(*played);
    is_played_ = played.has_value();
    return is_played_;
  }
  void decide(const IdleSpan& span, Away away) {
    absences_.decide(span.tensor, span.position, away);
    is_played_ = false;
  }

  // Decides until everything fits. False where nothing more can be done about a peak.
  bool descend() {
    constexpr int kRounds = 16;
    for (int round = 0; round < kRounds; ++round) {
      if (!is_played_ && !replay_step()) return false;
      used_link_ = 0;
      for (const IdleSpan& span : played_.away)
        if (absences_.after(span.tensor, span.position) == Away::left) used_link_ += candidate(span).copy_seconds;
      started_.assign(1, 0);
      for (const Op& op : played_.draft.ops)
        started_.push_back(started_.back() + (op.is_run() ? seconds_[op.run().task.index()] : 0));
      MaxTree live = profile();
      if (live.peak() <= limit_) return true;
      if (!lower(live)) return false;
    }
    return false;
  }

  // The spans between the passes, in the order in which they go by each way out. That is where most is gained; the
  // others go where these do not suffice.
  struct Orders {
    std::vector<std::uint32_t> drop, leave;
    std::vector<std::vector<std::uint32_t>> others;  // by block of ops
  };
  static constexpr std::int32_t kBlock = 32;  // ops
  [[nodiscard]] Orders orders() const {
    Orders result;
    result.others.resize(played_.draft.ops.size() / kBlock + 1);
    const auto& idle = played_.idle;
    for (std::uint32_t s = 0; s < idle.size(); ++s) {
      const Candidate& value = candidate(idle[s]);
      if (value.turn != idle[s].position) {
        if (value.bytes == 0) continue;
        for (std::int32_t block = idle[s].first / kBlock; block <= idle[s].last / kBlock; ++block)
          result.others[static_cast<std::size_t>(block)].push_back(s);
        continue;
      }
      if (value.drop_seconds < kImpossible) result.drop.push_back(s);
      if (value.copy_seconds < kImpossible) result.leave.push_back(s);
    }
    const auto per_byte = [&](std::uint32_t s) {
      return candidate(idle[s]).drop_seconds / static_cast<double>(candidate(idle[s]).bytes);
    };
    std::stable_sort(result.drop.begin(), result.drop.end(), [&](auto a, auto b) { return per_byte(a) < per_byte(b); });
    std::stable_sort(result.leave.begin(), result.leave.end(), [&](auto a, auto b) {
      if (trade_.leaves == Trade::First::dearest) return per_byte(a) > per_byte(b);
      return idle[a].last - idle[a].first > idle[b].last - idle[b].first;
    });
    return result;
  }

  // One way to lower a peak.
  struct Choice {
    const IdleSpan* span = nullptr;
    Away away = Away::kept;
    double price = kImpossible;  // seconds per byte
  };
  void offer(const IdleSpan& span, Away away, Choice& best) const {
    const double seconds = away == Away::dropped ? candidate(span).drop_seconds : leave_cost(span);
    const double price = seconds / static_cast<double>(candidate(span).bytes);
    if (price < best.price) best = {&span, away, price};
  }

  bool lower(MaxTree& live) {
    const Orders ways = orders();
    std::vector<bool> taken(played_.idle.size(), false);
    std::int32_t at = -1;
    std::size_t next_drop = 0, next_leave = 0;
    bool decided = false;
    while (live.peak() > limit_) {
      if (live.peak_at() != at) {
        at = live.peak_at();
        next_drop = next_leave = 0;
      }
      const auto covers = [&](std::uint32_t s) {
        return !taken[s] && played_.idle[s].first <= at && at <= played_.idle[s].last;
      };
      const auto advance = [&](const std::vector<std::uint32_t>& order, std::size_t& next) {
        while (next < order.size() && !covers(order[next])) ++next;
        return next < order.size();
      };
      Choice best;
      if (advance(ways.drop, next_drop)) offer(played_.idle[ways.drop[next_drop]], Away::dropped, best);
      if (advance(ways.leave, next_leave)) offer(played_.idle[ways.leave[next_leave]], Away::left, best);
      if (best.span == nullptr)
        for (const std::uint32_t s : ways.others[static_cast<std::size_t>(at / kBlock)])
          if (covers(s)) {
            offer(played_.idle[s], Away::dropped, best);
            offer(played_.idle[s], Away::left, best);
          }
      // Nobody can go; what the last decisions bring must be seen first.
      if (best.span == nullptr) return decided;
      const IdleSpan& chosen = *best.span;
      if (best.away == Away::left) used_link_ += candidate(chosen).copy_seconds;
      decide(chosen, best.away);
      taken[static_cast<std::size_t>(best.span - played_.idle.data())] = true;
      decided = true;
      add(live, chosen, -candidate(chosen).bytes);
    }
    return true;
  }

  // Copies there and back that the tasks meanwhile do not cover count in full.
  [[nodiscard]] double leave_cost(const IdleSpan& span) const {
    const double copy = candidate(span).copy_seconds;
    const double meanwhile =
        started_[static_cast<std::size_t>(span.last) + 1] - started_[static_cast<std::size_t>(span.first)];
    const double bare = std::max(0.0, (span.in_host ? 1 : 2) * copy - meanwhile);
    const bool hidden = used_link_ + copy <= link_seconds_;
    return copy * (hidden ? trade_.hidden_cost : 1) + bare;
  }

  // Takes back the dearest decisions that are not needed. True where there were such.
  bool take_back() {
    MaxTree live = profile();
    std::vector<const IdleSpan*> order;
    for (const IdleSpan& span : played_.away) order.push_back(&span);
    const auto cost = [&](const IdleSpan* span) {
      return absences_.after(span->tensor, span->position) == Away::dropped
                 ? candidate(*span).drop_seconds
                 : candidate(*span).copy_seconds * trade_.hidden_cost;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](const IdleSpan* a, const IdleSpan* b) { return cost(a) > cost(b); });
    bool any = false;
    for (const IdleSpan* const span : order) {
      add(live, *span, candidate(*span).bytes);
      if (live.peak() > limit_) {
        add(live, *span, -candidate(*span).bytes);
        continue;
      }
      decide(*span, Away::kept);
      any = true;
    }
    return any;
  }

  static constexpr std::int64_t kSmallest = 4096;  // not worth a decision

  const StepFacts& facts_;
  const Step& step_;
  const CostModel& cost_;
  PlanningContext context_;
  std::int64_t limit_ = 0;
  bool fails_ = false;
  Trade trade_;
  const std::vector<bool>& heads_;
  double link_seconds_ = 0, used_link_ = 0;
  std::vector<double> seconds_;          // by task
  std::vector<std::int64_t> workspace_;  // by task
  std::vector<Candidate> candidates_;    // by tensor
  Replays replays_;
  Absences absences_;
  Played played_;
  bool is_played_ = false;       // with the absences as they are
  std::vector<double> started_;  // by op of what was played: when it starts if copies take no time
};

JointChain::JointChain(const StepFacts& facts, const CostModel& cost, const PlanningContext& context,
                       const Trade& trade, const std::vector<bool>& heads)
    : planner_(std::make_unique<Planner>(facts, cost, context, trade, heads)) {}
JointChain::~JointChain() = default;
JointChain::JointChain(JointChain&&) noexcept = default;
JointChain& JointChain::operator=(JointChain&&) noexcept = default;

std::optional<Draft> JointChain::down_to(Bytes limit) { return planner_->down_to(limit); }

}  // namespace tide
