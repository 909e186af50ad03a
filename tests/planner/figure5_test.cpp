// Figure 5 of the SuperNeurons paper: which tensors are alive before and after each step of
// a small network with a fan. The paper's network runs DATA, two branches (one convolution;
// a convolution and a pool) and a fully connected layer over both; ours says explicitly
// where the branches meet (join).
//
//           ,-> left ----------.
//   data ---                     join -> fc -> loss
//           `-> right -> pool -'
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "network/builder.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "step/build.h"

namespace tide {
namespace {

using Names = std::set<std::string>;

NetworkPtr figure5() {
  Builder net("figure5");
  const Value data = net.input({1, 4, 8, 8}, "data");
  const Value left = net.convolution(data, {.channels = 4, .window = Window::square(3, 1, 1)}, "left");
  const Value right = net.convolution(data, {.channels = 4, .window = Window::square(3, 1, 1)}, "right");
  const Value pool = net.max_pool(right, {.window = Window::square(3, 1, 1)}, "pool");
  const Value join = net.add({left, pool}, "join");
  net.softmax_cross_entropy(net.fully_connected(join, {.channels = 3}, "fc"), {}, "loss");
  return std::make_shared<Network>(std::move(net).build());
}

// The data alive when a step begins and when it is over, by the name of what each stay
// holds at that time.
struct Sets {
  Names in, out;
};

// The paper's t0 is the batch itself.
bool counted(const Step& step, StorageId storage) {
  const Storage& bytes = step.storage(storage);
  return is_data(bytes.tensor_class) ||
         (bytes.entry.valid() && step.tensor(bytes.entry).tensor_class == TensorClass::input &&
          step.tensor(bytes.entry).role == Role::x);
}

std::map<std::string, Sets> live_sets(const Plan& plan) {
  const Phase& phase = plan.phases.front();
  const Step& step = *phase.step;
  std::map<std::string, Sets> result;
  std::vector<TensorId> holds;
  for (const Storage& storage : step.storages) holds.push_back(storage.entry);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(phase.ops.size()); ++i) {
    const Op& op = phase.ops[static_cast<std::size_t>(i)];
    Sets& sets = result[task_name(step, op.run().task)];
    const auto alive = [&](std::int32_t before, std::int32_t after) {
      Names names;
      for (const Residency& r : phase.residencies)
        if (counted(step, r.storage) && r.first <= before && r.last >= after && holds[r.storage.index()].valid())
          names.insert(tensor_name(step, holds[r.storage.index()]));
      return names;
    };
    sets.in = alive(i - 1, i);
    for (const Operand& operand : step.operands_of(op.run().task))
      if (operand.access != Access::read) holds[step.tensor(operand.tensor).storage.index()] = operand.tensor;
    sets.out = alive(i, i + 1);
  }
  return result;
}

TEST(Figure5, LiveSets) {
  Step step = build_step(figure5(), {.batch = 2, .rules = Rules::superneurons, .training = true, .optimizer = {}});
  const Plan plan = *make_plan(find_policy("liveness"), std::move(step), RooflineModel(generic_cpu()), {}).plan;
  std::map<std::string, Sets> sets = live_sets(plan);
  // The forward pass gathers; left.y is dead once it is joined (CONV's backward reads x only).
  EXPECT_EQ(sets["left forward"].in, (Names{"data.x"}));
  EXPECT_EQ(sets["pool forward"].out, (Names{"data.x", "left.y", "right.y", "pool.y"}));
  EXPECT_EQ(sets["join forward"].out, (Names{"data.x", "right.y", "pool.y", "join.y"}));
  // The paper's FC7: the fully connected layer's input and the gradient that came in are
  // freed behind it (t2 and t5 there), what POOL8 and CONV9 need stays.
  EXPECT_EQ(sets["fc backward-data"].in, (Names{"data.x", "right.y", "pool.y", "join.y", "loss.dx"}));
  EXPECT_EQ(sets["fc backward-weights"].out, (Names{"data.x", "right.y", "pool.y", "fc.dx"}));
  // POOL8 reads x and y; CONV9 needs its gradient and the data; nothing is left at the end.
  EXPECT_EQ(sets["pool backward"].in, (Names{"data.x", "right.y", "pool.y", "join.dx", "join.dx1"}));
  EXPECT_EQ(sets["pool backward"].out, (Names{"data.x", "join.dx", "pool.dx"}));
  EXPECT_EQ(sets["right backward-weights"].out, (Names{"data.x", "join.dx", "right.dx"}));
  EXPECT_EQ(sets["left backward-data"].in, (Names{"data.x", "join.dx", "right.dx"}));
}

}  // namespace
}  // namespace tide
