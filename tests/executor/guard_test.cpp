// The guard: kernels that write where they should not are caught with their name, and
// memory that the plan has freed reads as NaN.
#include <gtest/gtest.h>

#include <functional>

#include "backend/forwarding_backend.h"
#include "executor/job.h"
#include "network/builder.h"
#include "planner/policy.h"
#include "support/error_of.h"

namespace tide {
namespace {

// Sizes that are no multiples of 256 bytes, so that every tensor has a canary.
NetworkPtr odd_network() {
  Builder net("odd");
  Value x = net.input({1, 3, 5, 5});
  x = net.tanh(net.convolution(x, {.channels = 3, .window = Window::square(3, 1, 1)}, "conv"), "tanh");
  x = net.fully_connected(x, {.channels = 7}, "fc1");
  net.softmax_cross_entropy(net.fully_connected(net.tanh(x, "tanh2"), {.channels = 3}, "fc2"), {}, "softmax");
  return test::shared_network(std::move(net).build());
}

// The reference backend with one misbehaving task. All tasks have a workspace.
class Saboteur final : public ForwardingBackend {
 public:
  using Sabotage = std::function<void(const Step&, TaskId, const Launch&)>;
  static constexpr std::int64_t kWorkspace = 100;

  Saboteur(std::string task, Sabotage sabotage)
      : ForwardingBackend(make_backend("reference")), task_(std::move(task)), sabotage_(std::move(sabotage)) {}

  [[nodiscard]] std::string_view name() const override { return "saboteur"; }
  [[nodiscard]] std::string description() const override { return "saboteur"; }
  void annotate(Step& step) const override {
    ForwardingBackend::annotate(step);
    step.algorithm_sets = {{Algorithm{"default", Bytes(kWorkspace)}}};
  }
  [[nodiscard]] Kernel prepare(const Step& step, TaskId task, std::size_t algorithm) override {
    Kernel kernel = ForwardingBackend::prepare(step, task, algorithm);
    if (task_name(step, task) != task_) return kernel;
    return [this, kernel, &step, task](const Launch& launch) {
      kernel(launch);
      sabotage_(step, task, launch);
    };
  }

 private:
  std::string task_;
  Sabotage sabotage_;
};

// Writes `distance` bytes behind the end of the last tensor that the task makes.
Saboteur::Sabotage write_behind(std::int64_t distance) {
  return [distance](const Step& step, TaskId task, const Launch& launch) {
    const auto operands = step.operands_of(task);
    for (std::size_t i = operands.size(); i-- > 0;) {
      if (operands[i].access == Access::read) continue;
      launch.operands[i][step.storage(step.tensor(operands[i].tensor).storage).bytes.count() + distance - 1] =
          std::byte{1};
      return;
    }
  };
}

void write_behind_workspace(const Step& /*step*/, TaskId /*task*/, const Launch& launch) {
  launch.workspace[Saboteur::kWorkspace] = std::byte{1};
}

std::string error_of_one_step(Backend& backend, std::string_view policy, bool guard = true) {
  test::Job job(test::plan_for(odd_network(), backend, policy, test::training_step(3)), backend,
                {.guard = guard, .record = false});
  job.set_state(test::formula_values(*job.step().network));
  return test::error_of([&] { job.run(0); });
}

TEST(Guard, IsSilentWhereNothingIsWrong) {
  Saboteur backend("none", write_behind(1));
  for (const Policy& policy : policies()) EXPECT_EQ(error_of_one_step(backend, policy.name), "");
}

TEST(Guard, CatchesAByteBehindEveryKindOfResult) {
  const std::vector<std::pair<std::string, std::string>> tasks = {
      {"conv forward", "conv.y"},
      {"tanh backward", "tanh.dx"},
      {"fc1 backward-weights", "fc1.d_bias"},
      {"fc1 backward-data", "fc1.dx"},
      {"softmax forward", "softmax.metric"},
      {"conv update d_weight", "conv.first_moment"},
  };
  for (const auto& [task, tensor] : tasks) {
    Saboteur backend(task, write_behind(1));
    const std::string error = error_of_one_step(backend, "baseline");
    EXPECT_EQ(error, fmt::format("{} wrote 1 bytes past the end of {}", task, tensor));
    EXPECT_NE(error_of_one_step(backend, "liveness"), "") << task;
    EXPECT_EQ(error_of_one_step(backend, "liveness", false), "") << "that was not the guard";
  }
}

TEST(Guard, CatchesAByteFurtherBehind) {
  Saboteur backend("conv forward", write_behind(17));
  EXPECT_NE(error_of_one_step(backend, "liveness").find("conv forward wrote 17 bytes past the end of"),
            std::string::npos);
}

TEST(Guard, CatchesAByteBehindTheWorkspace) {
  Saboteur backend("fc2 backward-data", write_behind_workspace);
  EXPECT_EQ(error_of_one_step(backend, "liveness"), "fc2 backward-data wrote 1 bytes past the end of its workspace");
}

// Writes one byte behind tensor `name`, whoever uses it.
Saboteur::Sabotage write_behind_tensor(const Plan& plan, std::string_view name, Arena& arena) {
  const Phase& phase = plan.phases.front();
  for (const Residency& r : phase.residencies)
    for (std::size_t t = 0; t < phase.step->tensors.size(); ++t)
      if (phase.step->tensors[t].storage == r.storage && tensor_name(*phase.step, TensorId(t)) == name) {
        std::byte* const end = arena.at(r.address) + phase.step->storage(r.storage).bytes.count();
        return [end](const Step&, TaskId, const Launch&) { *end = std::byte{1}; };
      }
  throw Error("there is no tensor '{}'", name);
}

std::string error_where(const std::string& task, std::string_view behind) {
  const std::unique_ptr<Backend> real = make_backend("reference");
  Plan plan = test::plan_for(odd_network(), *real, "baseline", test::training_step(3));
  Arena arena(*real, summarize(plan).peak[Tier::device]);
  Saboteur backend(task, write_behind_tensor(plan, behind, arena));
  test::Job job(std::move(plan), backend, arena);
  job.set_state(test::formula_values(*job.step().network));
  return test::error_of([&] { job.run(0); });
}

TEST(Guard, CatchesDamageBehindATensorThatIsOnlyRead) {
  EXPECT_EQ(error_where("fc2 forward", "fc2.weight"), "fc2 forward wrote 1 bytes past the end of fc2.weight");
}

// Nobody looks at tensors that an op has nothing to do with, until they are used.
TEST(Guard, CatchesDamageBehindAnotherTensorWhenThatIsUsed) {
  EXPECT_EQ(error_where("conv forward", "fc2.weight"),
            "something before fc2 forward wrote 1 bytes past the end of fc2.weight");
}

TEST(Guard, CatchesDamageAfterTheLastUseWhenTheStepEnds) {
  EXPECT_EQ(error_where("conv update d_weight", "fc2.weight"),
            "something in this step wrote 1 bytes past the end of fc2.weight");
}

TEST(Guard, NamesTheCopyThatFindsDamage) {
  const std::unique_ptr<Backend> real = make_backend("reference");
  Plan plan = test::plan_for(odd_network(), *real, "baseline", test::training_step(3));
  Arena arena(*real, summarize(plan).peak[Tier::device]);
  Saboteur backend("fc2 forward", write_behind_tensor(plan, "conv.y", arena));
  // A copy to host memory as the last op, which the plan could do without.
  Phase& phase = plan.phases.front();
  for (const Tensor& tensor : phase.step->tensors) {
    if (tensor.role != Role::y || phase.step->layer_names[tensor.layer.index()] != "conv") continue;
    const auto last = static_cast<std::int32_t>(phase.ops.size());
    phase.ops.push_back(copy_op({tensor.storage, Tier::device, Tier::host}));
    phase.residencies.push_back({tensor.storage, Tier::host, last, last, Bytes()});
  }
  test::Job job(std::move(plan), backend, arena);
  job.set_state(test::formula_values(*job.step().network));
  try {
    job.run(0);
    FAIL() << "nothing was caught";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "something before the copy of conv.y wrote 1 bytes past the end of conv.y");
  }
}

// A plan that frees the value of `name` right after the op that makes it.
Plan freed_too_early(const Backend& backend, std::string_view name) {
  Plan plan = test::plan_for(odd_network(), backend, "baseline", test::training_step(3));
  Phase& phase = plan.phases.front();
  for (std::size_t i = 0; i < phase.ops.size(); ++i)
    for (const Operand& operand : phase.step->operands_of(phase.ops[i].run().task))
      for (Residency& r : phase.residencies)
        if (operand.access == Access::write && tensor_name(*phase.step, operand.tensor) == name &&
            r.storage == phase.step->tensor(operand.tensor).storage)
          r.last = static_cast<std::int32_t>(i);
  return plan;
}

TEST(Guard, FreedMemoryReadsAsNaN) {
  const std::unique_ptr<Backend> backend = test::fastest_backend();
  for (const bool guard : {true, false}) {
    test::Job job(freed_too_early(*backend, "tanh.y"), *backend, {.guard = guard, .record = false});
    job.set_state(test::formula_values(*job.step().network));
    EXPECT_EQ(std::isnan(job.run(0)), guard);
  }
}

TEST(Guard, MemoryThatNobodyFilledReadsAsNaN) {
  const std::unique_ptr<Backend> backend = make_backend("null");
  test::Job job(test::plan_for(odd_network(), *backend, "baseline", test::training_step(3)), *backend);
  job.set_state(test::formula_values(*job.step().network));
  job.run(0);
  for (std::size_t t = 0; t < job.step().tensors.size(); ++t) {
    if (job.step().tensors[t].tensor_class != TensorClass::activation) continue;
    for (const float value : job.read_last(TensorId(t)))
      ASSERT_TRUE(std::isnan(value)) << tensor_name(job.step(), TensorId(t));
  }
}

}  // namespace
}  // namespace tide
