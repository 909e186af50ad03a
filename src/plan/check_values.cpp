// Plays the ops in order and follows which value every stay holds. One play proves any
// number of them: at its end every persistent storage must hold, where it entered, the
// value that the next play expects, and all other contents count as undefined at the start.
#include <algorithm>

#include "plan/findings.h"

namespace tide::checker {
namespace {

// What a stay holds: a tensor with the first `parts` of its writes applied.
struct Content {
  TensorId tensor;
  std::int32_t parts = 0;
};

struct Stay {
  Content content;
  std::int32_t last_write = kEntry;
  Clock reads = Clock(-1);  // by lane: the last read since that write
};

class Player {
 public:
  Player(const Phase& phase, const std::vector<Clock>& clocks, Touches& touches, Findings& findings)
      : phase_(phase), step_(*phase.step), clocks_(clocks), touches_(touches), findings_(findings) {
    stays_.resize(phase.residencies.size());
    const Clock never(-1);

    touches_.assign(phase.residencies.size(), never);
    for (auto& tier : current_) tier.assign(step_.storages.size(), -1);
    count_parts();
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(phase.residencies.size()); ++r) {
      const Residency& residency = phase.residencies[static_cast<std::size_t>(r)];
      begins_.push_back({residency.first, r});
      ends_.push_back({residency.last, r});
    }
    std::sort(begins_.begin(), begins_.end());
    std::sort(ends_.begin(), ends_.end());
  }

  void play() {
    enter();
    const auto ops = static_cast<std::int32_t>(phase_.ops.size());
    for (std::int32_t i = 0; i < ops && !findings_.full(); ++i) {
      begin_stays(i);
      const Op& op = phase_.ops[static_cast<std::size_t>(i)];
      if (op.is_run())
        run(i, op);
      else
        copy(i, op);
      end_stays(i);
    }
    if (!findings_.full()) leave();
  }

 private:
  void count_parts() {
    total_parts_.assign(step_.tensors.size(), 0);
    ordinal_.assign(step_.operands.size(), 0);
    for (std::size_t t = 0; t < step_.ordered_tasks; ++t) {
      const Task& task = step_.tasks[t];
      for (std::uint32_t o = task.first_operand; o < task.first_operand + task.operand_count; ++o) {
        const Operand& operand = step_.operands[o];
        if (operand.access != Access::read) ordinal_[o] = total_parts_[operand.tensor.index()]++;
      }
    }
  }

  void touch(std::int32_t residency, std::int32_t op) {
    const Residency& r = phase_.residencies[static_cast<std::size_t>(residency)];
    auto& last = touches_[static_cast<std::size_t>(residency)][lane(op)];
    last = std::max(last, op);
    // The stay begins with its first op: nobody may use it before that op is over.
    if (r.first >= 0 && r.first != op && !over_before(phase_, clocks_, r.first, op))
      findings_.add(FindingKind::race, "{} uses {} without waiting for {}, where its stay begins", op_name(phase_, op),
                    storage_name(step_, r.storage), op_name(phase_, r.first));
  }

  [[nodiscard]] Lane lane(std::int32_t op) const { return phase_.ops[static_cast<std::size_t>(op)].lane; }

  void begin_stays(std::int32_t op) {
    for (; next_begin_ < begins_.size() && begins_[next_begin_].first == op; ++next_begin_) {
      const std::int32_t r = begins_[next_begin_].second;
      const Residency& residency = phase_.residencies[static_cast<std::size_t>(r)];
      current(residency.tier, residency.storage) = r;
      if (op == kEntry) stays_[static_cast<std::size_t>(r)].content = {step_.storage(residency.storage).entry, 0};
    }
  }

  void end_stays(std::int32_t op) {
    for (; next_end_ < ends_.size() && ends_[next_end_].first == op; ++next_end_) {
      const Residency& residency = phase_.residencies[static_cast<std::size_t>(ends_[next_end_].second)];
      current(residency.tier, residency.storage) = -1;
    }
  }

  void enter() {
    begin_stays(kEntry);
    for (std::size_t s = 0; s < step_.storages.size(); ++s) {
      if (!step_.storages[s].persistent && !step_.storages[s].entry.valid()) continue;
      bool anywhere = false;
      for (const TierRow& row : kTierTable) anywhere = anywhere || current(row.tier, StorageId(s)) >= 0;
      if (!anywhere)
        findings_.add(FindingKind::not_resident, "{} is nowhere when the step starts",
                      storage_name(step_, StorageId(s)));
    }
    end_stays(kEntry);
  }

  void leave() {
    const auto end = static_cast<std::int32_t>(phase_.ops.size());
    for (const Residency& entry : phase_.residencies) {
      const Storage& storage = step_.storage(entry.storage);
      if (!storage.persistent || entry.first != kEntry) continue;
      const std::int32_t r = current(entry.tier, entry.storage);
      if (r < 0 || phase_.residencies[static_cast<std::size_t>(r)].last != end) {
        findings_.add(FindingKind::bad_exit, "{} is not in {} memory when the step ends",
                      storage_name(step_, entry.storage), tier_name(entry.tier));
        continue;
      }
      const Residency& exit = phase_.residencies[static_cast<std::size_t>(r)];
      if (exit.address != entry.address)
        findings_.add(FindingKind::bad_exit, "{} enters at address {} and leaves at {}",
                      storage_name(step_, entry.storage), entry.address.count(), exit.address.count());
      if (!holds(r, storage.exit))
        findings_.add(FindingKind::bad_exit, "{} does not hold its new value when the step ends",
                      storage_name(step_, entry.storage));
    }
  }

  [[nodiscard]] bool holds(std::int32_t residency, TensorId tensor) const {
    const Content& content = stays_[static_cast<std::size_t>(residency)].content;
    return content.tensor == tensor && tensor.valid() && content.parts == total_parts_[tensor.index()];
  }

  void read(std::int32_t residency, std::int32_t op) {
    Stay& stay = stays_[static_cast<std::size_t>(residency)];
    if (!over_before(phase_, clocks_, stay.last_write, op) && stay.last_write != op)
      findings_.add(FindingKind::race, "{} reads {} without waiting for {}", op_name(phase_, op), name(residency),
                    op_name(phase_, stay.last_write));
    auto& last = stay.reads[lane(op)];
    last = std::max(last, op);
    touch(residency, op);
  }

  void write(std::int32_t residency, std::int32_t op, Content content) {
    Stay& stay = stays_[static_cast<std::size_t>(residency)];
    // A task may write two parts of one tensor; check_in_place() sees to it that they are apart.
    const bool ordered = stay.last_write == op || over_before(phase_, clocks_, stay.last_write, op);
    std::int32_t unordered = ordered ? -1 : stay.last_write;
    for (const std::int32_t reader : stay.reads)
      if (reader != op && !over_before(phase_, clocks_, reader, op)) unordered = reader;
    if (unordered >= 0)
      findings_.add(FindingKind::race, "{} overwrites {} without waiting for {}", op_name(phase_, op), name(residency),
                    op_name(phase_, unordered));
    stay.content = content;
    stay.last_write = op;
    stay.reads = Clock(-1);
    touch(residency, op);
  }

  void run(std::int32_t index, const Op& op) {
    const Task& task = step_.task(op.run().task);
    const auto operands = step_.operands_of(task);
    for (const Operand& operand : operands) {
      const std::int32_t r = current(Tier::device, step_.tensor(operand.tensor).storage);
      if (r < 0) {
        findings_.add(FindingKind::not_resident, "{} needs {}, which is not in device memory", op_name(phase_, index),
                      tensor_name(step_, operand.tensor));
        return;
      }
      if (operand.access != Access::read) continue;
      if (!holds(r, operand.tensor))
        findings_.add(FindingKind::wrong_value, "{} needs {}, but its place holds {}", op_name(phase_, index),
                      tensor_name(step_, operand.tensor), content_name(r));
      read(r, index);
    }
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Operand& operand = operands[k];
      if (operand.access == Access::read) continue;
      check_in_place(index, task, k);
      const std::int32_t r = current(Tier::device, step_.tensor(operand.tensor).storage);
      const std::int32_t ordinal = task.kind == TaskKind::replay ? 0 : ordinal_[task.first_operand + k];
      // Further parts that the same task writes go on with the first.
      const bool goes_on = ordinal != 0 && stays_[static_cast<std::size_t>(r)].last_write == index;
      if (operand.access == Access::write && ordinal != 0 && !goes_on)
        findings_.add(FindingKind::wrong_value, "{} overwrites what earlier tasks wrote into {}",
                      op_name(phase_, index), tensor_name(step_, operand.tensor));
      if (operand.access != Access::write || goes_on) {
        const Content& before = stays_[static_cast<std::size_t>(r)].content;
        if (before.tensor != operand.tensor || before.parts != ordinal)
          findings_.add(FindingKind::wrong_value, "{} adds to {} out of turn: its place holds {}",
                        op_name(phase_, index), tensor_name(step_, operand.tensor), content_name(r));
      }
      const std::int32_t parts = task.kind == TaskKind::replay ? total_parts_[operand.tensor.index()] : ordinal + 1;
      write(r, index, {operand.tensor, parts});
    }
  }

  // Whether they are different parts of one tensor: parts that are written do not overlap (check_views.cpp).
  [[nodiscard]] static bool apart(const Operand& a, const Operand& b) {
    return a.tensor == b.tensor && a.access != Access::read && b.access != Access::read && a.view.valid() &&
           b.view.valid() && a.view != b.view;
  }

  // A result may share bytes with another operand only where the task allows it.
  void check_in_place(std::int32_t index, const Task& task, std::size_t target) {
    const auto operands = step_.operands_of(task);
    const StorageId storage = step_.tensor(operands[target].tensor).storage;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (k == target || step_.tensor(operands[k].tensor).storage != storage || apart(operands[k], operands[target]))
        continue;
      bool allowed = false;
      for (const InPlacePair pair : step_.in_place_of(task))
        if (static_cast<std::size_t>(pair.target) == target &&
            operands[static_cast<std::size_t>(pair.source)].tensor == operands[k].tensor)
          allowed = true;
      if (!allowed || operands[k].access != Access::read)
        findings_.add(FindingKind::wrong_value, "{} would write {} over {}, which it does not allow",
                      op_name(phase_, index), tensor_name(step_, operands[target].tensor),
                      tensor_name(step_, operands[k].tensor));
    }
  }

  void copy(std::int32_t index, const Op& op) {
    const std::int32_t source = current(op.copy().from, op.copy().storage);
    const std::int32_t target = current(op.copy().to, op.copy().storage);
    if (source < 0 || target < 0) {
      findings_.add(FindingKind::not_resident, "{} has no {}", op_name(phase_, index),
                    source < 0 ? "source" : "target");
      return;
    }
    const Content content = stays_[static_cast<std::size_t>(source)].content;
    if (!content.tensor.valid())
      findings_.add(FindingKind::wrong_value, "{} copies bytes that nobody wrote", op_name(phase_, index));
    read(source, index);
    write(target, index, content);
  }

  [[nodiscard]] std::string name(std::int32_t residency) const {
    return storage_name(step_, phase_.residencies[static_cast<std::size_t>(residency)].storage);
  }
  [[nodiscard]] std::string content_name(std::int32_t residency) const {
    const Content& content = stays_[static_cast<std::size_t>(residency)].content;
    if (!content.tensor.valid()) return "nothing yet";
    return fmt::format("{} with {} of {} writes", tensor_name(step_, content.tensor), content.parts,
                       total_parts_[content.tensor.index()]);
  }
  std::int32_t& current(Tier tier, StorageId storage) { return current_[tier][storage.index()]; }

  const Phase& phase_;
  const Step& step_;
  const std::vector<Clock>& clocks_;
  Touches& touches_;
  Findings& findings_;
  std::vector<Stay> stays_;                                           // by residency
  PerTier<std::vector<std::int32_t>> current_;                        // by tier and storage: the stay now, or -1
  std::vector<std::int32_t> total_parts_;                             // by tensor: writes that complete it
  std::vector<std::int32_t> ordinal_;                                 // by operand: which of these writes it is
  std::vector<std::pair<std::int32_t, std::int32_t>> begins_, ends_;  // (op, residency), sorted
  std::size_t next_begin_ = 0, next_end_ = 0;
};

}  // namespace

void check_values(const Phase& phase, const std::vector<Clock>& clocks, Touches& touches, Findings& findings) {
  Player(phase, clocks, touches, findings).play();
}

}  // namespace tide::checker
