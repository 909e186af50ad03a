// The checker against plans that were damaged on purpose: every kind of damage must be
// found, on several networks each, and the undamaged plans must pass.
#include <gtest/gtest.h>

#include <functional>

#include "plan/checker.h"
#include "plan/patient.h"
#include "support/spill.h"

namespace tide {
namespace {

using testing_support::Patient;
using testing_support::patient;

struct Damage {
  const char* name;
  // False where this plan offers no place for it.
  std::function<bool(Patient&)> apply;
};

bool is_copy(const Op& op, Lane lane) { return op.is_copy() && op.lane == lane; }

// Drops from `op` everything that orders it behind `target`, directly or through others.
void unorder(Patient& p, std::size_t op, std::int32_t target) {
  for (std::size_t i = static_cast<std::size_t>(target) + 1; i <= op; ++i)
    std::erase_if(p.ops()[i].waits, [&](std::int32_t wait) { return wait >= target; });
}

// Some of what is in host memory goes on to another rank's; the plan is as valid as before.
bool lend(Patient& p) {
  int sent = 0;
  p.plan = testing_support::with_spills(p.plan, static_cast<std::uint32_t>(p.random()), 60, sent, Tier::lent);
  EXPECT_TRUE(check(p.plan).empty());
  return sent > 0;
}

// All that is in host memory goes to another device instead.
bool push(Patient& p) {
  for (Residency& r : p.stays())
    if (r.tier == Tier::host) r.tier = Tier::peer;
  bool any = false;
  for (Op& op : p.ops()) {
    if (!op.is_copy()) continue;
    any = true;
    (op.copy().to == Tier::host ? op.copy().to : op.copy().from) = Tier::peer;
  }
  EXPECT_TRUE(check(p.plan).empty());
  return any;
}

// Two stays that are there at once.
bool put_onto_another(Patient& p, Tier tier) {
  const auto found = p.stays_where([&](const Residency& r) { return r.tier == tier; });
  for (const std::size_t a : found)
    for (const std::size_t b : found)
      if (a != b && p.stays()[a].first < p.stays()[b].last && p.stays()[b].first < p.stays()[a].last) {
        p.stays()[a].address = p.stays()[b].address;
        return true;
      }
  return false;
}

std::vector<Damage> damages() {
  return {
      {"WaitOfCopyOutDropped",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return is_copy(op, Lane::out); });
         if (found.empty()) return false;
         p.ops()[found[0]].waits.clear();  // later ones may be ordered by their lane all the same
         return true;
       }},
      {"WaitOfCopyInDropped",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return is_copy(op, Lane::in); });
         if (found.empty()) return false;
         p.ops()[found[0]].waits.clear();
         return true;
       }},
      {"WaitForCopyInDropped",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return is_copy(op, Lane::in); });
         if (found.empty()) return false;
         const std::size_t copy = found[p.pick(found.size())];
         unorder(p, p.ops().size() - 1, static_cast<std::int32_t>(copy));
         return true;
       }},
      {"WaitForLaterOp",
       [](Patient& p) {
         const std::size_t at = p.pick(p.ops().size());
         p.ops()[at].waits.push_back(static_cast<std::int32_t>(at));
         return true;
       }},
      {"NegativeWait",
       [](Patient& p) {
         p.ops()[p.pick(p.ops().size())].waits.push_back(-3);
         return true;
       }},
      {"AddressOntoAnother",
       [](Patient& p) {
         const auto found = p.transient_stays();
         for (const std::size_t a : found)
           for (const std::size_t b : found) {
             Residency& first = p.stays()[a];
             const Residency& second = p.stays()[b];
             if (a == b || first.storage == second.storage || first.last < second.first || second.last < first.first)
               continue;
             if (p.step->storage(first.storage).bytes.is_zero()) continue;
             first.address = second.address;
             return true;
           }
         return false;
       }},
      {"AddressOntoPersistent",
       [](Patient& p) {
         const auto found = p.transient_stays();
         if (found.empty()) return false;
         p.stays()[found[p.pick(found.size())]].address = Bytes(0);
         return true;
       }},
      {"AddressUnaligned",
       [](Patient& p) {
         p.stays()[p.pick(p.stays().size())].address += Bytes(64);
         return true;
       }},
      {"AddressBeyondBudget",
       [](Patient& p) {
         const auto found = p.transient_stays();
         p.stays()[found[p.pick(found.size())]].address = *p.plan.memory[Tier::device];
         return true;
       }},
      {"LateFree",
       [](Patient& p) {  // until the next tenant of the address has moved in
         for (const std::size_t a : p.transient_stays())
           for (const std::size_t b : p.transient_stays()) {
             Residency& first = p.stays()[a];
             const Residency& second = p.stays()[b];
             if (first.storage == second.storage || first.address != second.address || second.first <= first.last)
               continue;
             first.last = second.first;
             return true;
           }
         return false;
       }},
      {"NeverFreed",
       [](Patient& p) {
         for (const std::size_t a : p.transient_stays())
           for (const std::size_t b : p.transient_stays()) {
             Residency& first = p.stays()[a];
             const Residency& second = p.stays()[b];
             if (first.storage == second.storage || first.address != second.address || second.first <= first.last)
               continue;
             first.last = static_cast<std::int32_t>(p.ops().size());
             return true;
           }
         return false;
       }},
      {"EarlyFree",
       [](Patient& p) {
         const auto found = p.stays_where([&](const Residency& r) {
           return r.tier == Tier::device && !p.step->storage(r.storage).persistent && r.last > r.first && r.first >= 0;
         });
         if (found.empty()) return false;
         --p.stays()[found[p.pick(found.size())]].last;
         return true;
       }},
      {"EarlyBegin",
       [](Patient& p) {  // while the last tenant of the address is still there
         for (const std::size_t a : p.transient_stays())
           for (const std::size_t b : p.transient_stays()) {
             const Residency& first = p.stays()[a];
             Residency& second = p.stays()[b];
             if (first.storage == second.storage || first.address != second.address || second.first <= first.last)
               continue;
             second.first = first.last;
             return true;
           }
         return false;
       }},
      {"LateBegin",
       [](Patient& p) {
         const auto found = p.stays_where(
             [&](const Residency& r) { return r.tier == Tier::device && r.last > r.first && r.first >= 0; });
         if (found.empty()) return false;
         ++p.stays()[found[p.pick(found.size())]].first;
         return true;
       }},
      {"StayRemoved",
       [](Patient& p) {
         const auto found = p.transient_stays();
         p.stays().erase(p.stays().begin() + static_cast<std::ptrdiff_t>(found[p.pick(found.size())]));
         return true;
       }},
      {"StayDoubled",
       [](Patient& p) {
         p.stays().push_back(p.stays()[p.pick(p.stays().size())]);
         return true;
       }},
      {"StayReversed",
       [](Patient& p) {
         const auto found = p.transient_stays();
         Residency& r = p.stays()[found[p.pick(found.size())]];
         r.last = r.first - 1;
         return true;
       }},
      {"TaskDropped",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return op.is_run(); });
         p.remove_op(found[p.pick(found.size())]);
         return true;
       }},
      {"TaskTwice",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return op.is_run(); });
         p.ops().push_back(p.ops()[found[p.pick(found.size())]]);
         return true;
       }},
      {"TaskReplacedByAnother",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return op.is_run(); });
         p.ops()[found[0]].run().task = p.ops()[found.back()].run().task;
         return true;
       }},
      {"TasksSwapped",
       [](Patient& p) {  // a producer behind its consumer
         for (std::size_t i = 0; i + 1 < p.ops().size(); ++i) {
           Op& a = p.ops()[i];
           Op& b = p.ops()[i + 1];
           if (!a.is_run() || !b.is_run()) continue;
           for (const Operand& made : p.step->operands_of(a.run().task))
             for (const Operand& used : p.step->operands_of(b.run().task))
               if (made.access == Access::write && used.access == Access::read && made.tensor == used.tensor) {
                 std::swap(a.run().task, b.run().task);
                 std::swap(a.run().workspace, b.run().workspace);
                 return true;
               }
         }
         return false;
       }},
      {"TaskOutOfRange",
       [](Patient& p) {
         p.ops()[p.ops_where([](const Op& op) { return op.is_run(); })[0]].run().task = TaskId(p.step->tasks.size());
         return true;
       }},
      {"AlgorithmOutOfRange",
       [](Patient& p) {
         p.ops()[p.ops_where([](const Op& op) { return op.is_run(); })[0]].run().algorithm = 9;
         return true;
       }},
      {"WorkspaceOntoTensor",
       [](Patient& p) {
         const auto found = p.ops_where([&](const Op& op) {
           return op.is_run() && !p.step->algorithms_of(op.run().task)[op.run().algorithm].workspace.is_zero();
         });
         p.ops()[found[p.pick(found.size())]].run().workspace = Bytes(0);
         return true;
       }},
      {"WorkspaceUnaligned",
       [](Patient& p) {
         p.ops()[p.ops_where([](const Op& op) { return op.is_run(); })[0]].run().workspace += Bytes(8);
         return true;
       }},
      {"WorkspaceBeyondBudget",
       [](Patient& p) {
         const auto found = p.ops_where([&](const Op& op) {
           return op.is_run() && !p.step->algorithms_of(op.run().task)[op.run().algorithm].workspace.is_zero();
         });
         p.ops()[found[p.pick(found.size())]].run().workspace = *p.plan.memory[Tier::device];
         return true;
       }},
      {"WorkspaceGrown",
       [](Patient& p) {
         p.step->algorithm_sets[1][0].workspace = Bytes(p.plan.memory[Tier::device]->count());
         return true;
       }},
      {"RunOnACopyLane",
       [](Patient& p) {
         p.ops()[p.ops_where([](const Op& op) { return op.is_run(); })[0]].lane = Lane::in;
         return true;
       }},
      {"CopyOutDropped",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return is_copy(op, Lane::out); });
         if (found.empty()) return false;
         p.remove_op(found[p.pick(found.size())]);
         return true;
       }},
      {"CopyInDropped",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return is_copy(op, Lane::in); });
         if (found.empty()) return false;
         p.remove_op(found[p.pick(found.size())]);
         return true;
       }},
      {"CopyOfAnotherStorage",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return is_copy(op, Lane::in); });
         if (found.size() < 2 || p.ops()[found[0]].copy().storage == p.ops()[found[1]].copy().storage) return false;
         std::swap(p.ops()[found[0]].copy().storage, p.ops()[found[1]].copy().storage);
         return true;
       }},
      {"CopyStraightToDisk",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return is_copy(op, Lane::out); });
         if (found.empty()) return false;
         p.ops()[found[0]].copy().to = Tier::disk;
         return true;
       }},
      {"CopyStraightToAnotherRank",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return is_copy(op, Lane::out); });
         if (found.empty()) return false;
         p.ops()[found[0]].copy().to = Tier::lent;
         return true;
       }},
      {"CopyFromAnotherDeviceThatHasNothing",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return is_copy(op, Lane::in); });
         if (found.empty()) return false;
         p.ops()[found[p.pick(found.size())]].copy().from = Tier::peer;
         return true;
       }},
      {"PeerBudgetTooSmall",
       [](Patient& p) {
         if (!push(p)) return false;
         p.plan.memory[Tier::peer] = testing_support::tier_bytes(p.plan, Tier::peer) - Bytes(kAlignment);
         return true;
       }},
      {"PeerAddressOntoAnother", [](Patient& p) { return push(p) && put_onto_another(p, Tier::peer); }},
      {"PeerStayEndsBeforeItIsPulled",
       [](Patient& p) {
         if (!push(p)) return false;
         const auto found = p.stays_where([](const Residency& r) { return r.tier == Tier::peer; });
         --p.stays()[found[p.pick(found.size())]].last;
         return true;
       }},
      {"LentAddressOntoAnother", [](Patient& p) { return lend(p) && put_onto_another(p, Tier::lent); }},
      {"LentBudgetTooSmall",
       [](Patient& p) {
         if (!lend(p)) return false;
         p.plan.memory[Tier::lent] = testing_support::tier_bytes(p.plan, Tier::lent) - Bytes(kAlignment);
         return true;
       }},
      {"LentStayEndsBeforeItIsReceived",
       [](Patient& p) {
         if (!lend(p)) return false;
         const auto found = p.stays_where([](const Residency& r) { return r.tier == Tier::lent; });
         --p.stays()[found[p.pick(found.size())]].last;
         return true;
       }},
      {"WaitOfReceiveDropped",
       [](Patient& p) {
         if (!lend(p)) return false;
         const auto found = p.ops_where([](const Op& op) { return op.is_copy() && op.copy().from == Tier::lent; });
         unorder(p, found[p.pick(found.size())], 0);
         return true;
       }},
      {"SendLeftOut",
       [](Patient& p) {
         if (!lend(p)) return false;
         const auto found = p.ops_where([](const Op& op) { return op.is_copy() && op.copy().to == Tier::lent; });
         p.remove_op(found[p.pick(found.size())]);
         return true;
       }},
      {"ReceiveOnTheOtherLane",
       [](Patient& p) {
         if (!lend(p)) return false;
         const auto found = p.ops_where([](const Op& op) { return op.is_copy() && op.copy().from == Tier::lent; });
         p.ops()[found[p.pick(found.size())]].lane = Lane::out;
         return true;
       }},
      {"CopyTurnedAround",
       [](Patient& p) {
         const auto found = p.ops_where([](const Op& op) { return is_copy(op, Lane::out); });
         if (found.empty()) return false;
         std::swap(p.ops()[found[0]].copy().from, p.ops()[found[0]].copy().to);
         return true;
       }},
      {"HostAddressOntoAnother", [](Patient& p) { return put_onto_another(p, Tier::host); }},
      {"HostBudgetTooSmall",
       [](Patient& p) {
         if (p.plan.memory[Tier::host]->is_zero()) return false;
         p.plan.memory[Tier::host] = *p.plan.memory[Tier::host] - Bytes(kAlignment);
         return true;
       }},
      {"BudgetTooSmall",
       [](Patient& p) {
         p.plan.memory[Tier::device] = *p.plan.memory[Tier::device] - Bytes(kAlignment);
         return true;
       }},
      {"ParameterNowhereAtTheStart",
       [](Patient& p) {
         const auto found = p.stays_where([&](const Residency& r) { return p.step->storage(r.storage).persistent; });
         p.stays().erase(p.stays().begin() + static_cast<std::ptrdiff_t>(found[p.pick(found.size())]));
         return true;
       }},
      {"ParameterFreed",
       [](Patient& p) {
         const auto found = p.stays_where([&](const Residency& r) { return p.step->storage(r.storage).persistent; });
         p.stays()[found[p.pick(found.size())]].last = static_cast<std::int32_t>(p.ops().size()) - 1;
         return true;
       }},
      {"InputNowhereAtTheStart",
       [](Patient& p) {
         const auto found = p.stays_where(
             [&](const Residency& r) { return p.step->storage(r.storage).tensor_class == TensorClass::input; });
         p.stays().erase(p.stays().begin() + static_cast<std::ptrdiff_t>(found[p.pick(found.size())]));
         return true;
       }},
      {"UpdateBeforeBackwardData",
       [](Patient& p) {  // the stale value: a task would read weights of the next step
         for (std::size_t i = 0; i < p.ops().size(); ++i) {
           if (!p.ops()[i].is_run() || p.step->task(p.ops()[i].run().task).kind != TaskKind::update) continue;
           TensorId written;
           for (const Operand& operand : p.step->operands_of(p.ops()[i].run().task))
             if (operand.role == Role::weight && operand.access == Access::write) written = operand.tensor;
           for (std::size_t j = 0; j < i; ++j) {
             if (!p.ops()[j].is_run()) continue;
             for (const Operand& operand : p.step->operands_of(p.ops()[j].run().task))
               if (operand.access == Access::read &&
                   p.step->tensor(operand.tensor).storage == p.step->tensor(written).storage) {
                 std::swap(p.ops()[i].run().task, p.ops()[j].run().task);
                 std::swap(p.ops()[i].run().algorithm, p.ops()[j].run().algorithm);
                 return true;
               }
           }
         }
         return false;
       }},
      {"StoragesMergedWhileBothAreNeeded",
       [](Patient& p) {
         for (std::size_t t = 0; t < p.step->ordered_tasks; ++t) {
           const auto operands = p.step->operands_of(TaskId(t));
           for (const Operand& a : operands)
             for (const Operand& b : operands) {
               const StorageId first = p.step->tensor(a.tensor).storage;
               const StorageId second = p.step->tensor(b.tensor).storage;
               if (a.access != Access::read || b.access != Access::read || first == second) continue;
               p.step->tensors[b.tensor.index()].storage = first;
               return true;
             }
         }
         return false;
       }},
      {"InPlaceWhereNotAllowed",
       [](Patient& p) {
         for (Task& task : p.step->tasks) {
           if (task.kind == TaskKind::update && task.in_place_count > 0) {
             task.in_place_count = 0;
             return true;
           }
         }
         return false;
       }},
      {"SumsOutOfTurn",
       [](Patient& p) {
         std::vector<std::size_t> adders;
         for (const std::size_t i : p.ops_where([](const Op& op) { return op.is_run(); }))
           for (const Operand& operand : p.step->operands_of(p.ops()[i].run().task))
             if (operand.access == Access::accumulate) adders.push_back(i);
         for (const std::size_t i : adders)
           for (std::size_t j = 0; j < i; ++j)
             for (const Operand& earlier : p.step->operands_of(p.ops()[j].is_run() ? p.ops()[j].run().task : TaskId(0)))
               for (const Operand& later : p.step->operands_of(p.ops()[i].run().task))
                 if (p.ops()[j].is_run() && earlier.access == Access::write && later.access == Access::accumulate &&
                     earlier.tensor == later.tensor) {
                   std::swap(p.ops()[i].run().task, p.ops()[j].run().task);
                   return true;
                 }
         return false;
       }},
      {"SumStartsOver",
       [](Patient& p) {  // an accumulation that overwrites loses what came before
         for (Operand& operand : p.step->operands)
           if (operand.access == Access::accumulate) {
             operand.access = Access::write;
             return true;
           }
         return false;
       }},
      {"ExitValueOfAnotherTensor",
       [](Patient& p) {
         for (Storage& storage : p.step->storages)
           if (storage.persistent && storage.entry.valid() && storage.exit != storage.entry) {
             storage.exit = storage.entry;
             return true;
           }
         return false;
       }},
      {"StorageGrown",
       [](Patient& p) {
         const auto found = p.transient_stays();
         Storage& storage = p.step->storages[p.stays()[found[p.pick(found.size())]].storage.index()];
         storage.bytes = *p.plan.memory[Tier::device];
         return true;
       }},
      {"OperandOutOfRange",
       [](Patient& p) {
         p.step->operands[p.pick(p.step->operands.size())].tensor = TensorId(p.step->tensors.size() + 5);
         return true;
       }},
      {"TensorInNoStorage",
       [](Patient& p) {
         p.step->tensors[p.pick(p.step->tensors.size())].storage = StorageId();
         return true;
       }},
      {"NoPhase",
       [](Patient& p) {
         p.plan.phases.clear();
         return true;
       }},
      {"RepeatZero",
       [](Patient& p) {
         p.phase().repeat = 0;
         return true;
       }},
  };
}

class DamageTest : public testing::TestWithParam<Damage> {};

TEST_P(DamageTest, IsFound) {
  int applied = 0;
  for (std::uint32_t seed = 0; seed < 300 && applied < 12; ++seed) {
    Patient p = patient(seed);
    ASSERT_TRUE(check(p.plan).empty()) << check(p.plan)[0].text;
    if (!GetParam().apply(p)) continue;
    ++applied;
    EXPECT_FALSE(check(p.plan).empty()) << "seed " << seed;
  }
  EXPECT_GE(applied, 3) << "no plan offers a place for this damage";
}

INSTANTIATE_TEST_SUITE_P(Checker, DamageTest, testing::ValuesIn(damages()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace tide
