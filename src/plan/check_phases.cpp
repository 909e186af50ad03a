// What several phases have to agree on: each was proved by itself, entering with what its step
// says. Here: that the phase before it leaves just that, in the same place.
#include <algorithm>

#include "plan/findings.h"

namespace tide::checker {
namespace {

// A persistent storage as all phases know it.
struct Kept {
  StorageId storage;
  Tier tier = Tier::device;
  Bytes address;
};

// In table order. Metrics are read by the host after each phase and need not last.
std::vector<Kept> kept_by(const Phase& phase) {
  std::vector<Kept> kept;
  for (const Residency& r : phase.residencies) {
    const Storage& storage = phase.step->storage(r.storage);
    if (r.first == kEntry && storage.persistent && storage.tensor_class != TensorClass::metric)
      kept.push_back({r.storage, r.tier, r.address});
  }
  std::sort(kept.begin(), kept.end(),
            [](const Kept& a, const Kept& b) { return std::pair(a.storage, a.tier) < std::pair(b.storage, b.tier); });
  return kept;
}

bool same_storage(const Step& a, StorageId in_a, const Step& b, StorageId in_b) {
  const Storage& one = a.storage(in_a);
  const Storage& other = b.storage(in_b);
  const Tensor& value = a.tensor(one.exit);
  const Tensor& same = b.tensor(other.exit);
  return one.bytes == other.bytes && one.tensor_class == other.tensor_class && value.parameter == same.parameter &&
         value.role == same.role && value.shape == same.shape && value.order == same.order && value.type == same.type;
}

// First round once, later rounds, update once; or one whole step.
bool in_order(const Plan& plan) {
  const auto part = [&](std::size_t p) { return plan.phases[p].step->options.part; };
  const std::size_t count = plan.phases.size();
  if (count == 1) return part(0) == Part::whole && plan.phases[0].repeat == 1;
  for (std::size_t p = 0; p < count; ++p) {
    const Part expected = p == 0 ? Part::first_round : p + 1 == count ? Part::update : Part::later_round;
    if (part(p) != expected || (expected != Part::later_round && plan.phases[p].repeat != 1)) return false;
  }
  return true;
}

// What the values of a persistent storage may do in a round: only statistics change from round to
// round, gradients are begun by the first and go on through the others, all else stays.
bool flows(const Storage& storage, Part part) {
  const bool gradient = storage.tensor_class == TensorClass::parameter_gradient;
  if (gradient && part == Part::first_round) return !storage.entry.valid();
  if (!storage.entry.valid()) return false;
  return part == Part::update || storage.tensor_class == TensorClass::running_statistics ||
         storage.entry == storage.exit;
}

}  // namespace

void check_phases(const Plan& plan, Findings& findings) {
  if (!in_order(plan)) {
    findings.add(FindingKind::malformed, "the phases are not one step, or a first round, later rounds and an update");
    return;
  }
  if (plan.numerics != numerics_of(plan))
    findings.add(FindingKind::malformed, "the plan says that its numbers are {}, they are {}",
                 numerics_name(plan.numerics), numerics_name(numerics_of(plan)));
  if (plan.phases.size() == 1) return;
  const std::int64_t batch = plan.phases.back().step->options.batch;
  std::int64_t left = batch;
  for (const Phase& phase : plan.phases) {
    if (phase.step->options.part == Part::update) break;
    const std::int64_t samples = phase.step->options.batch;
    if (samples < 1 || samples > left / phase.repeat) {
      findings.add(FindingKind::malformed, "the rounds have more samples than the batch of {}, or none", batch);
      return;
    }
    left -= samples * phase.repeat;
  }
  if (left != 0) findings.add(FindingKind::malformed, "{} samples of the batch of {} are in no round", left, batch);

  const Phase& first = plan.phases.front();
  const std::vector<Kept> expected = kept_by(first);
  for (const Phase& phase : plan.phases) {
    const Step& step = *phase.step;
    const std::string_view part = part_name(step.options.part);
    const std::vector<Kept> kept = kept_by(phase);
    if (kept.size() != expected.size()) {
      findings.add(FindingKind::bad_exit, "{} storages persist in the {}, {} in the {}", expected.size(),
                   part_name(Part::first_round), kept.size(), part);
      return;
    }
    for (std::size_t k = 0; k < kept.size() && !findings.full(); ++k) {
      const auto name = [&] { return storage_name(step, kept[k].storage); };
      if (!same_storage(*first.step, expected[k].storage, step, kept[k].storage))
        findings.add(FindingKind::bad_exit, "{} persists in the {} in the place of {}", name(), part,
                     storage_name(*first.step, expected[k].storage));
      else if (kept[k].tier != expected[k].tier || kept[k].address != expected[k].address)
        findings.add(FindingKind::bad_exit, "{} is at {} of {} memory in the {}, at {} of {} memory before", name(),
                     kept[k].address.count(), tier_name(kept[k].tier), part, expected[k].address.count(),
                     tier_name(expected[k].tier));
      else if (!flows(step.storage(kept[k].storage), step.options.part))
        findings.add(FindingKind::wrong_value, "{} does not have the value from round to round that the {} needs",
                     name(), part);
    }
  }
}

}  // namespace tide::checker
