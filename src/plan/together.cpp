#include "plan/together.h"

#include <algorithm>
#include <map>
#include <memory>
#include <queue>

#include "base/names.h"
#include "plan/findings.h"
#include "plan/flows.h"

namespace tide {
namespace together {
namespace {

// What an op takes where nobody is in its way.
struct OpTime {
  double fixed = 0;  // of a task; of a copy: before its first byte
  double bytes = 0;  // of a copy over the link
  double cap = 0;    // of a copy: bytes per second
};

// What all rounds of a phase have in common.
struct PhaseFacts {
  const Phase* phase = nullptr;
  std::vector<OpTime> times;
  PerLane<std::vector<std::int32_t>> lanes;  // the ops of each, in order
};

OpTime time_of(const Phase& phase, const Op& op, const CostModel& cost) {
  if (op.is_run()) return {cost.task_seconds(*phase.step, op.run().task, op.run().algorithm), 0, 0};
  const Copy& copy = op.copy();
  const Bytes bytes = phase.step->storage(copy.storage).bytes;
  const double all = cost.copy_seconds(bytes, copy.from, copy.to);
  const double latency = cost.copy_seconds(Bytes(), copy.from, copy.to);
  const std::optional<Route> route = find_route(copy.from, copy.to);
  const bool shares = route && row_of(*route).medium == Medium::link;
  if (!shares || bytes.is_zero() || !(all > latency)) return {all, 0, 0};
  const auto count = static_cast<double>(bytes.count());
  return {latency, count, count / (all - latency)};
}

std::vector<PhaseFacts> facts_of(const Plan& plan, const CostModel& cost) {
  std::vector<PhaseFacts> facts;
  for (const Phase& phase : plan.phases) {
    PhaseFacts& each = facts.emplace_back();
    each.phase = &phase;
    for (std::size_t i = 0; i < phase.ops.size(); ++i) {
      each.times.push_back(time_of(phase, phase.ops[i], cost));
      each.lanes[phase.ops[i].lane].push_back(static_cast<std::int32_t>(i));
    }
  }
  return facts;
}

bool is_together(const Phase& phase, const Op& op) {
  return op.is_run() && is_collective(phase.step->task(op.run().task).kind);
}

// Where one device is in its plan.
struct Rank {
  const Plan* plan = nullptr;
  const CostModel* cost = nullptr;
  const std::vector<PhaseFacts>* facts = nullptr;
  std::size_t phase = 0;
  std::int32_t round = 0;
  std::size_t base = 0;  // of this round's spans
  std::size_t left = 0;  // ops of this round that are not over
  PerLane<std::size_t> next{};
  PerLane<bool> busy{};
  std::vector<bool> over;
  std::size_t collectives = 0;  // it has come to so many
  Timeline timeline;

  [[nodiscard]] bool is_done() const { return phase == facts->size(); }
  [[nodiscard]] const PhaseFacts& now() const { return (*facts)[phase]; }
};

// What the ranks do together for the k-th time.
struct Meeting {
  std::vector<std::int32_t> ops;  // by rank; -1: not here yet
  std::size_t here = 0;
  std::size_t stage = 0, flows_left = 0;
};

class Play {
 public:
  Play(std::span<const Plan* const> plans, std::span<const CostModel* const> costs, const Topology& topology,
       ReduceRoad road)
      : topology_(topology), roads_(topology), road_(road), ranks_(plans.size()) {
    if (plans.size() > 1) ring_ = roads_.ring(plans.size());
    std::map<std::pair<const Plan*, const CostModel*>, const std::vector<PhaseFacts>*> known;
    for (std::size_t r = 0; r < plans.size(); ++r) {
      Rank& rank = ranks_[r];
      rank.plan = plans[r];
      rank.cost = costs.size() == 1 ? costs.front() : costs[r];
      const std::vector<PhaseFacts>*& facts = known[{rank.plan, rank.cost}];
      if (facts == nullptr)
        facts = facts_.emplace_back(std::make_unique<std::vector<PhaseFacts>>(facts_of(*rank.plan, *rank.cost))).get();
      rank.facts = facts;
    }
  }

  std::vector<Timeline> perform() && {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      enter_phase(ranks_[r]);
      advance(r);
    }
    while (step()) {
    }
    std::vector<Timeline> timelines;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (!ranks_[r].is_done()) throw Error("{}", stuck_text());
      timelines.push_back(std::move(ranks_[r].timeline));
    }
    return timelines;
  }

 private:
  enum class What : std::uint8_t { op_ends, flow_begins, stage_ends };
  struct Event {
    double at = 0;
    std::uint64_t number = 0;  // in the order in which they were made
    What what = What::op_ends;
    std::size_t index = 0;  // a rank, a flow or a meeting
    std::int32_t op = 0;

    friend bool operator>(const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.number > b.number; }
  };
  // A flow of a copy (op of a rank) or of a stage of a meeting.
  struct Transfer {
    Flow flow;
    double bytes = 0;  // left at `since`
    double since = 0, ends = 0;
    bool of_meeting = false;
    std::size_t owner = 0;
    std::int32_t op = 0;
  };

  void at(double time, What what, std::size_t index, std::int32_t op = 0) {
    events_.push({time, made_++, what, index, op});
  }

  // Everything that happens at the next moment; false: nothing will.
  bool step() {
    if (shares_changed_) share();
    double next = events_.empty() ? kNever : events_.top().at;
    for (const auto& transfer : flowing_) next = std::min(next, transfer->ends);
    if (next == kNever) return false;
    now_ = next;
    while (!events_.empty() && events_.top().at <= now_) {
      const Event event = events_.top();
      events_.pop();
      switch (event.what) {
        case What::op_ends: end_op(event.index, event.op); break;
        case What::flow_begins: begin_flow(event.index); break;
        case What::stage_ends: next_stage(event.index); break;
      }
    }
    std::vector<std::unique_ptr<Transfer>> ended;
    for (auto& transfer : flowing_)
      if (transfer->ends <= now_) ended.push_back(std::move(transfer));
    if (ended.empty()) return true;
    std::erase(flowing_, nullptr);
    shares_changed_ = true;
    for (const auto& transfer : ended) {
      if (!transfer->of_meeting)
        end_op(transfer->owner, transfer->op);
      else if (--meetings_[transfer->owner].flows_left == 0)
        next_stage(transfer->owner);
    }
    return true;
  }

  // New rates. What keeps its rate keeps its end to the bit.
  void share() {
    shares_changed_ = false;
    std::vector<Flow*> flows;
    std::vector<double> before;
    for (const auto& transfer : flowing_) {
      before.push_back(transfer->flow.rate);
      flows.push_back(&transfer->flow);
    }
    share_fairly(roads_.links(), flows);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      Transfer& transfer = *flowing_[f];
      if (transfer.flow.rate == before[f]) continue;
      transfer.bytes = std::max(0.0, transfer.bytes - before[f] * (now_ - transfer.since));
      transfer.since = now_;
      transfer.ends = now_ + transfer.bytes / transfer.flow.rate;
    }
  }

  // Its first byte comes after `latency`.
  void send(std::unique_ptr<Transfer> transfer, double latency) {
    waiting_.push_back(std::move(transfer));
    at(now_ + latency, What::flow_begins, waiting_.size() - 1);
  }
  void begin_flow(std::size_t waiting) {
    std::unique_ptr<Transfer> transfer = std::move(waiting_[waiting]);
    transfer->since = now_;
    transfer->ends = kNever;
    flowing_.push_back(std::move(transfer));
    shares_changed_ = true;
  }

  void enter_phase(Rank& rank) {
    while (!rank.is_done() && rank.now().phase->ops.empty()) ++rank.phase;
    rank.timeline.seconds = now_;
    if (rank.is_done()) return;
    const std::size_t ops = rank.now().phase->ops.size();
    rank.base = rank.timeline.spans.size();
    rank.timeline.spans.resize(rank.base + ops);
    rank.left = ops;
    rank.next = PerLane<std::size_t>(0);
    rank.busy = PerLane<bool>(false);
    rank.over.assign(ops, false);
  }

  void advance(std::size_t r) {
    Rank& rank = ranks_[r];
    if (rank.is_done()) return;
    const PhaseFacts& facts = rank.now();
    for (const Lane lane : kLaneTable) {
      if (rank.busy[lane] || rank.next[lane] == facts.lanes[lane].size()) continue;
      const std::int32_t op = facts.lanes[lane][rank.next[lane]];
      const std::vector<std::int32_t>& waits = facts.phase->ops[static_cast<std::size_t>(op)].waits;
      if (std::ranges::any_of(waits, [&](std::int32_t w) { return !rank.over[static_cast<std::size_t>(w)]; })) continue;
      rank.busy[lane] = true;
      ++rank.next[lane];
      start(r, op);
    }
  }

  void start(std::size_t r, std::int32_t index) {
    Rank& rank = ranks_[r];
    const auto i = static_cast<std::size_t>(index);
    const PhaseFacts& facts = rank.now();
    const Op& op = facts.phase->ops[i];
    rank.timeline.spans[rank.base + i] = {index, now_, now_};
    if (ranks_.size() > 1 && is_together(*facts.phase, op)) return meet(r, index);
    const OpTime& time = facts.times[i];
    if (time.bytes == 0) return at(now_ + time.fixed, What::op_ends, r, index);
    auto transfer = std::make_unique<Transfer>();
    transfer->flow = {.path = op.lane == Lane::out ? roads_.up(r) : roads_.down(r), .cap = time.cap};
    transfer->bytes = time.bytes;
    transfer->owner = r;
    transfer->op = index;
    send(std::move(transfer), time.fixed);
  }

  void end_op(std::size_t r, std::int32_t index) {
    Rank& rank = ranks_[r];
    const auto i = static_cast<std::size_t>(index);
    rank.timeline.spans[rank.base + i].end = now_;
    rank.over[i] = true;
    rank.busy[rank.now().phase->ops[i].lane] = false;
    if (--rank.left == 0) {
      if (++rank.round == rank.now().phase->repeat) {
        rank.round = 0;
        ++rank.phase;
      }
      enter_phase(rank);
    }
    advance(r);
  }

  void meet(std::size_t r, std::int32_t op) {
    const std::size_t k = ranks_[r].collectives++;
    if (k == meetings_.size()) meetings_.push_back({std::vector<std::int32_t>(ranks_.size(), -1), 0, 0, 0});
    Meeting& meeting = meetings_[k];
    for (std::size_t other = 0; other < ranks_.size(); ++other)
      if (meeting.ops[other] >= 0 && !same_sum(r, op, other, meeting.ops[other]))
        throw Error("the ranks come to different sums, which would not end: rank {} to {}, rank {} to {}", other,
                    name_of(other, meeting.ops[other]), r, name_of(r, op));
    meeting.ops[r] = op;
    if (++meeting.here < ranks_.size()) return;
    for (std::size_t each = 0; each < ranks_.size(); ++each)
      ranks_[each].timeline.spans[ranks_[each].base + static_cast<std::size_t>(meeting.ops[each])].start = now_;
    run_stage(k);
  }

  [[nodiscard]] TaskId task_of(std::size_t r, std::int32_t op) const {
    return ranks_[r].now().phase->ops[static_cast<std::size_t>(op)].run().task;
  }
  [[nodiscard]] const Step& step_of(std::size_t r) const { return *ranks_[r].now().phase->step; }
  [[nodiscard]] std::string name_of(std::size_t r, std::int32_t op) const {
    return checker::op_name(*ranks_[r].now().phase, op);
  }
  [[nodiscard]] bool same_sum(std::size_t a, std::int32_t op_a, std::size_t b, std::int32_t op_b) const {
    const TaskId task_a = task_of(a, op_a), task_b = task_of(b, op_b);
    const Step &step_a = step_of(a), &step_b = step_of(b);
    if (&step_a == &step_b && task_a == task_b) return true;
    return step_a.task(task_a).kind == step_b.task(task_b).kind &&
           collective_bytes(step_a, task_a) == collective_bytes(step_b, task_b) &&
           task_name(step_a, task_a) == task_name(step_b, task_b);
  }

  void next_stage(std::size_t k) {
    ++meetings_[k].stage;
    run_stage(k);
  }

  // The shares of its bytes that a rank sends and gets.
  struct Shares {
    double sent = 1, got = 1;
  };
  [[nodiscard]] static Shares shares_of(TaskKind kind, double ranks) {
    if (kind == TaskKind::scatter) return {1, 1 / ranks};
    if (kind == TaskKind::gather) return {1 / ranks, 1};
    return {};
  }

  void run_stage(std::size_t k) {
    const TaskId task = task_of(0, meetings_[k].ops[0]);
    const auto bytes = static_cast<double>(collective_bytes(step_of(0), task).count());
    const TaskKind kind = step_of(0).task(task).kind;
    if (road_ == ReduceRoad::ring)
      ring_stage(k, kind, bytes);
    else
      cpu_stage(k, kind, bytes);
  }

  void end_meeting(std::size_t k) {
    // A copy, since the ends of ops may make new meetings.
    const std::vector<std::int32_t> ops = meetings_[k].ops;
    for (std::size_t r = 0; r < ranks_.size(); ++r) at(now_, What::op_ends, r, ops[r]);
  }

  void send_for(std::size_t k, const Path& path, double bytes, double latency,
                double cap = std::numeric_limits<double>::infinity()) {
    auto transfer = std::make_unique<Transfer>();
    transfer->flow = {.path = path, .cap = cap};
    transfer->bytes = bytes;
    transfer->of_meeting = true;
    transfer->owner = k;
    ++meetings_[k].flows_left;
    send(std::move(transfer), latency);
  }

  void ring_stage(std::size_t k, TaskKind kind, double bytes) {
    if (meetings_[k].stage > 0) return end_meeting(k);
    const auto ranks = static_cast<double>(ranks_.size());
    const double turns = (kind == TaskKind::reduce ? 2 : 1) * (ranks - 1);
    send_for(k, ring_, turns * bytes / ranks, turns * ring_.latency_seconds);
  }

  void cpu_stage(std::size_t k, TaskKind kind, double bytes) {
    const auto ranks = static_cast<double>(ranks_.size()), hosts = static_cast<double>(roads_.hosts());
    const Shares shares = shares_of(kind, ranks);
    switch (meetings_[k].stage) {
      case 0: return send_all(k, shares.sent * bytes, Tier::device, Tier::host);
      case 1: return at(now_ + adding_seconds(shares.sent * bytes), What::stage_ends, k);
      case 2:
        if (roads_.hosts() == 1) return next_stage(k);
        {
          const Path ring = roads_.ring_of_hosts();
          const double turns = 2 * (hosts - 1);
          return send_for(k, ring, turns * bytes / hosts, turns * ring.latency_seconds);
        }
      case 3: return send_all(k, shares.got * bytes, Tier::host, Tier::device);
      default: return end_meeting(k);
    }
  }

  // Of every rank, as its cost model copies.
  void send_all(std::size_t k, double bytes, Tier from, Tier to) {
    const Bytes whole(static_cast<std::int64_t>(std::max(1.0, bytes)));
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const double latency = ranks_[r].cost->copy_seconds(Bytes(), from, to);
      const double transfer = ranks_[r].cost->copy_seconds(whole, from, to) - latency;
      const Path& path = from == Tier::device ? roads_.up(r) : roads_.down(r);
      send_for(k, path, static_cast<double>(whole.count()), latency,
               transfer > 0 ? static_cast<double>(whole.count()) / transfer : kNever);
    }
  }

  // Each host reads what its ranks sent and writes one sum; the slowest counts.
  [[nodiscard]] double adding_seconds(double bytes) const {
    std::vector<double> read(roads_.hosts(), 0);
    for (std::size_t r = 0; r < ranks_.size(); ++r) read[roads_.host_of(r)] += bytes;
    double most = 0;
    for (std::size_t h = 0; h < read.size(); ++h)
      most = std::max(most, (read[h] + bytes) / topology_.hosts[h].memory_bytes_per_second);
    return most;
  }

  // What each rank that is not done waits for.
  [[nodiscard]] std::string stuck_text() const {
    std::string text = "the ranks wait for each other for ever:";
    constexpr std::size_t kNamed = 4;
    std::size_t named = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const Rank& rank = ranks_[r];
      std::string at = "is done";
      if (!rank.is_done()) {
        at = "is stuck";
        for (const Lane lane : kLaneTable) {
          const auto& queue = rank.now().lanes[lane];
          const std::size_t position = rank.busy[lane] ? rank.next[lane] - 1 : rank.next[lane];
          if (position >= queue.size()) continue;
          at = fmt::format("{} {}", rank.busy[lane] ? "is in" : "is before", name_of(r, queue[position]));
          if (rank.busy[lane]) break;
        }
      }
      if (++named <= kNamed) text += fmt::format("{} rank {} {}", named > 1 ? "," : "", r, at);
    }
    if (named > kNamed) text += fmt::format(", and {} more", named - kNamed);
    return text + "; every rank has to make the same sums in one order";
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  const Topology& topology_;
  Roads roads_;
  ReduceRoad road_;
  Path ring_;
  std::vector<std::unique_ptr<std::vector<PhaseFacts>>> facts_;
  std::vector<Rank> ranks_;
  std::vector<Meeting> meetings_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::unique_ptr<Transfer>> waiting_, flowing_;
  std::uint64_t made_ = 0;
  double now_ = 0;
  bool shares_changed_ = false;
};

constexpr std::array<std::string_view, 2> kRoadNames{"nccl", "cpu"};

}  // namespace
}  // namespace together

std::string_view road_name(ReduceRoad road) { return together::kRoadNames[static_cast<std::size_t>(road)]; }
ReduceRoad road_from_name(std::string_view name) {
  return find_name<ReduceRoad>(together::kRoadNames, name, "way to reduce");
}

Bytes collective_bytes(const Step& step, TaskId task) {
  Bytes most;
  for (const Operand& operand : step.operands_of(task)) most = std::max(most, bytes_of(step, operand));
  return most;
}

std::vector<Timeline> simulate_together(std::span<const Plan* const> plans, std::span<const CostModel* const> costs,
                                        const Topology& topology, ReduceRoad road) {
  if (plans.empty() || device_count(topology) < plans.size())
    throw Error("there are {} plans for the {} devices of '{}'; give each a device", plans.size(),
                device_count(topology), topology.name);
  if (costs.size() != 1 && costs.size() != plans.size())
    throw Error("there are {} cost models for {} plans; give one for each, or one", costs.size(), plans.size());
  return together::Play(plans, costs, topology, road).perform();
}

double seconds_of(std::span<const Timeline> timelines) {
  double most = 0;
  for (const Timeline& timeline : timelines) most = std::max(most, timeline.seconds);
  return most;
}

}  // namespace tide
