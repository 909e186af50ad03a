#include "plan/check_together.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "plan/findings.h"

namespace tide {
namespace checker {
namespace {

// One thing that a rank does together with the others.
struct Joint {
  TaskKind kind = TaskKind::reduce;
  std::string name;
  std::int64_t bytes = 0;
  std::size_t phase = 0;
  std::int32_t op = 0;
};

constexpr std::int64_t kMostJoint = 1'000'000;  // of one rank, rounds included: more cannot be followed

bool joins(const Phase& phase, const Op& op) {
  return op.is_run() && is_collective(phase.step->task(op.run().task).kind);
}

// Of every tensor that it writes; of those that it reads where it writes none.
std::int64_t joint_bytes(const Step& step, TaskId task) {
  std::int64_t read = 0, written = 0;
  std::set<std::pair<TensorId, ViewId>> seen;
  for (const Operand& operand : step.operands_of(task))
    if (seen.insert({operand.tensor, operand.view}).second)
      (operand.access == Access::read ? read : written) += bytes_of(step, operand).count();
  return written > 0 ? written : read;
}

bool operand_fits(const Step& step, const Operand& operand) {
  if (!operand.tensor.valid() || operand.tensor.index() >= step.tensors.size()) return false;
  if (operand.view.valid() && operand.view.index() >= step.views.size()) return false;
  const Tensor& tensor = step.tensor(operand.tensor);
  return tensor.storage.valid() && tensor.storage.index() < step.storages.size() &&
         (!tensor.layer.valid() || tensor.layer.index() < step.layer_names.size());
}

// What the rest indexes by.
void check_indices(const Plan& plan, std::size_t rank, Findings& findings) {
  const auto bad = [&](std::size_t p, std::size_t i, std::string_view what) {
    findings.add(FindingKind::malformed, "rank {}, phase {}: op {} {}", rank, p, i, what);
  };
  for (std::size_t p = 0; p < plan.phases.size(); ++p) {
    const Phase& phase = plan.phases[p];
    if (!phase.step || phase.repeat < 1) {
      findings.add(FindingKind::malformed, "rank {}, phase {} has no step or repeats {} times", rank, p, phase.repeat);
      continue;
    }
    const Step& step = *phase.step;
    for (std::size_t i = 0; i < phase.ops.size() && !findings.full(); ++i) {
      const Op& op = phase.ops[i];
      if (index_of(op.lane) >= kLanes) bad(p, i, "is on no lane");
      for (const std::int32_t wait : op.waits)
        if (wait < 0 || static_cast<std::size_t>(wait) >= phase.ops.size()) bad(p, i, "waits for nothing that exists");
      if (!op.is_run()) continue;
      if (!op.run().task.valid() || op.run().task.index() >= step.tasks.size()) {
        bad(p, i, "runs a task that does not exist");
        continue;
      }
      const Task& task = step.task(op.run().task);
      bool fits = std::uint64_t{task.first_operand} + task.operand_count <= step.operands.size() &&
                  task.operand_count > 0 && task.layer.valid() && task.layer.index() < step.layer_names.size();
      if (fits)
        for (const Operand& operand : step.operands_of(task)) fits = fits && operand_fits(step, operand);
      if (!fits) bad(p, i, "refers outside its tables");
      if (is_collective(task.kind) && op.lane != Lane::reduce)
        bad(p, i, "is done with other ranks outside the reduce lane");
    }
  }
}

// In the order of the lane, rounds one after the other.
std::vector<Joint> joint_of(const Plan& plan, std::size_t rank, Findings& findings) {
  std::vector<Joint> list;
  for (std::size_t p = 0; p < plan.phases.size(); ++p) {
    const Phase& phase = plan.phases[p];
    std::vector<Joint> once;
    for (std::size_t i = 0; i < phase.ops.size(); ++i)
      if (joins(phase, phase.ops[i])) {
        const TaskId task = phase.ops[i].run().task;
        once.push_back({phase.step->task(task).kind, task_name(*phase.step, task), joint_bytes(*phase.step, task), p,
                        static_cast<std::int32_t>(i)});
      }
    if (static_cast<std::int64_t>(once.size()) * phase.repeat > kMostJoint - static_cast<std::int64_t>(list.size())) {
      findings.add(FindingKind::malformed, "rank {} does more than {} things with other ranks in one step", rank,
                   kMostJoint);
      return {};
    }
    if (!once.empty())
      for (std::int32_t round = 0; round < phase.repeat; ++round) list.insert(list.end(), once.begin(), once.end());
  }
  return list;
}

void compare_orders(std::span<const Plan* const> plans, const std::vector<std::vector<Joint>>& joints,
                    Findings& findings) {
  const auto named = [&](std::size_t rank, const Joint& joint) {
    return fmt::format("{} with {} bytes", op_name(plans[rank]->phases[joint.phase], joint.op), joint.bytes);
  };
  for (std::size_t r = 1; r < plans.size() && !findings.full(); ++r) {
    const std::vector<Joint>&first = joints[0], &other = joints[r];
    const std::size_t both = std::min(first.size(), other.size());
    std::size_t k = 0;
    while (k < both && std::tie(first[k].kind, first[k].name, first[k].bytes) ==
                           std::tie(other[k].kind, other[k].name, other[k].bytes))
      ++k;
    if (k < both)
      findings.add(FindingKind::apart, "as number {} with the others, rank 0 does {}, rank {} does {}", k,
                   named(0, first[k]), r, named(r, other[k]));
    else if (first.size() != other.size())
      findings.add(FindingKind::apart, "rank 0 does {} things with the others, rank {} does {}", first.size(), r,
                   other.size());
  }
}

// All ranks' ops as one graph, in which what they do together is one node.
class WaitGraph {
 public:
  explicit WaitGraph(std::span<const Plan* const> plans) : plans_(plans) {
    for (std::size_t r = 0; r < plans.size(); ++r) add_rank(r);
  }

  // A node that comes after itself, and those on the way; empty: there is none.
  [[nodiscard]] std::vector<std::string> circle() const {
    std::vector<std::int32_t> before(nodes_.size(), 0);
    for (const Node& node : nodes_)
      for (const std::size_t next : node.next) ++before[next];
    std::vector<std::size_t> ready;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (before[n] == 0) ready.push_back(n);
    std::size_t seen = 0;
    for (; !ready.empty(); ++seen) {
      const std::size_t n = ready.back();
      ready.pop_back();
      for (const std::size_t next : nodes_[n].next)
        if (--before[next] == 0) ready.push_back(next);
    }
    if (seen == nodes_.size()) return {};
    // What is left has a predecessor that is left: going back ends in a circle.
    std::vector<std::size_t> previous(nodes_.size(), nodes_.size());
    std::size_t at = nodes_.size();
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (before[n] > 0) {
        at = n;
        for (const std::size_t next : nodes_[n].next)
          if (before[next] > 0) previous[next] = n;
      }
    std::vector<bool> passed(nodes_.size(), false);
    while (!passed[at]) {
      passed[at] = true;
      at = previous[at];
    }
    std::vector<std::string> names;
    for (std::size_t n = previous[at];; n = previous[n]) {
      if (nodes_[n].op >= 0) names.push_back(name_of(nodes_[n]));
      if (n == at) break;
    }
    std::ranges::reverse(names);
    return names;
  }

 private:
  struct Node {
    std::size_t rank = 0, phase = 0;
    std::int32_t op = -1;  // -1: the end of a round
    bool joint = false;
    std::vector<std::size_t> next = {};
  };
  using Key = std::tuple<TaskKind, std::string, std::int64_t>;  // which time it is done

  [[nodiscard]] std::string name_of(const Node& node) const {
    const std::string name = op_name(plans_[node.rank]->phases[node.phase], node.op);
    return node.joint ? name + " of all" : fmt::format("{} of rank {}", name, node.rank);
  }

  std::size_t add_node(const Node& node) {
    nodes_.push_back(node);
    return nodes_.size() - 1;
  }

  void add_rank(std::size_t rank) {
    std::map<std::pair<TaskKind, std::string>, std::int64_t> times;
    std::size_t gate = add_node({.rank = rank});  // behind which a round starts
    const Plan& plan = *plans_[rank];
    for (std::size_t p = 0; p < plan.phases.size(); ++p) {
      const Phase& phase = plan.phases[p];
      const bool any = std::ranges::any_of(phase.ops, [&](const Op& op) { return joins(phase, op); });
      // Rounds in which a rank is by itself are all alike.
      for (std::int32_t round = 0; round < (any ? phase.repeat : 1); ++round) {
        std::vector<std::size_t> nodes;
        for (std::size_t i = 0; i < phase.ops.size(); ++i)
          nodes.push_back(node_of({.rank = rank, .phase = p, .op = static_cast<std::int32_t>(i)}, times));
        const std::size_t end = add_node({.rank = rank, .phase = p});
        PerLane<std::size_t> last{gate};
        for (std::size_t i = 0; i < phase.ops.size(); ++i) {
          std::size_t& before = last[phase.ops[i].lane];
          nodes_[before].next.push_back(nodes[i]);
          before = nodes[i];
          for (const std::int32_t wait : phase.ops[i].waits)
            nodes_[nodes[static_cast<std::size_t>(wait)]].next.push_back(nodes[i]);
        }
        for (const std::size_t each : last) nodes_[each].next.push_back(end);
        gate = end;
      }
    }
  }

  std::size_t node_of(Node node, std::map<std::pair<TaskKind, std::string>, std::int64_t>& times) {
    const Phase& phase = plans_[node.rank]->phases[node.phase];
    const Op& op = phase.ops[static_cast<std::size_t>(node.op)];
    if (!joins(phase, op)) return add_node(node);
    const TaskKind kind = phase.step->task(op.run().task).kind;
    const std::string name = task_name(*phase.step, op.run().task);
    const auto [known, is_new] = joint_.try_emplace(Key(kind, name, times[{kind, name}]++), nodes_.size());
    node.joint = true;
    if (is_new) add_node(node);
    return known->second;
  }

  std::span<const Plan* const> plans_;
  std::vector<Node> nodes_;
  std::map<Key, std::size_t> joint_;
};

}  // namespace
}  // namespace checker

std::vector<Finding> check_together(std::span<const Plan* const> plans, std::size_t limit) {
  checker::Findings findings(limit);
  for (std::size_t r = 0; r < plans.size(); ++r) checker::check_indices(*plans[r], r, findings);
  if (!findings.empty()) return std::move(findings).take();
  std::vector<std::vector<checker::Joint>> joints;
  for (std::size_t r = 0; r < plans.size(); ++r) joints.push_back(checker::joint_of(*plans[r], r, findings));
  if (!findings.empty()) return std::move(findings).take();
  checker::compare_orders(plans, joints, findings);
  const std::vector<std::string> circle = checker::WaitGraph(plans).circle();
  if (!circle.empty()) {
    constexpr std::size_t kNamed = 6;
    std::string text;
    for (std::size_t i = 0; i < circle.size() && i < kNamed; ++i)
      text += fmt::format("{}{}", i == 0 ? "" : ", then ", circle[i]);
    findings.add(FindingKind::deadlock, "{}{} come in a circle", text,
                 circle.size() > kNamed ? fmt::format(" and {} more", circle.size() - kNamed) : "");
  }
  return std::move(findings).take();
}

void require_valid_together(std::span<const Plan* const> plans) {
  const std::vector<Finding> findings = check_together(plans, 1);
  if (!findings.empty())
    throw Error("the plans of the ranks do not go together ({}): {}", finding_name(findings.front().kind),
                findings.front().text);
}

}  // namespace tide
