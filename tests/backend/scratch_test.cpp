// Libraries are held to the workspace they asked for: every task of strided convolutions with
// odd channel counts runs with wide margins around its operands and workspace.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "backend/backend.h"
#include "network/builder.h"
#include "step/build.h"

namespace tide {
namespace {

constexpr std::size_t kMargin = 1 << 16;
constexpr auto kMark = std::byte{0xCA};

// Memory with a marked margin on both sides.
class Fenced {
 public:
  explicit Fenced(std::size_t bytes)
      : bytes_(bytes), memory_(Bytes(static_cast<std::int64_t>(bytes + 2 * kMargin)).aligned().size() + 256, kMark) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data() + kMargin);
    start_ = memory_.data() + kMargin + (256 - address % 256) % 256;
    std::memset(start_, 0, bytes);
  }
  [[nodiscard]] std::byte* start() { return start_; }
  [[nodiscard]] bool intact() const {
    for (const std::byte* at = memory_.data(); at < memory_.data() + memory_.size(); ++at)
      if ((at < start_ || at >= start_ + bytes_) && *at != kMark) return false;
    return true;
  }

 private:
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* start_ = nullptr;
};

// Threads that write into each other's scratch show as other bits now and then.
TEST(Scratch, StridedConvolutionsGiveTheSameBitsEveryTime) {
  std::unique_ptr<Backend> backend;
  try {
    backend = make_backend("cpu", 2);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  Builder net("strided");
  const Value x = net.convolution(net.input({1, 4, 4, 4}), {.channels = 3, .window = Window::square(1)});
  const Value y = net.convolution(x, {.channels = 3, .window = Window::square(1, 2)});
  net.softmax_cross_entropy(net.fully_connected(y, {.channels = 2}));
  Step step = build_step(std::make_shared<Network>(std::move(net).build()), {.batch = 2});
  backend->annotate(step);
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
    if (step.layer_kind(step.tasks[t]) != LayerKind::convolution || step.tasks[t].kind == TaskKind::update) continue;
    const Kernel kernel = backend->prepare(step, TaskId(t), 0);
    std::vector<std::vector<float>> values, first;
    for (const Operand& operand : step.operands_of(TaskId(t)))
      values.emplace_back(step.storage(step.tensor(operand.tensor).storage).bytes.size() / sizeof(float));
    values.emplace_back(step.algorithms_of(TaskId(t)).front().workspace.size() / sizeof(float));
    std::vector<std::byte*> addresses;
    for (std::vector<float>& value : values) addresses.push_back(reinterpret_cast<std::byte*>(value.data()));
    const StepState state;
    for (int round = 0; round < 2000; ++round) {
      for (std::vector<float>& value : values)
        for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<float>(i * 7919 % 101) / 101;
      kernel(Launch{addresses.data(), addresses.back(), &state});
      values.pop_back();
      if (round == 0) first = values;
      ASSERT_EQ(values, first) << task_name(step, TaskId(t)) << ", round " << round;
      values.emplace_back(step.algorithms_of(TaskId(t)).front().workspace.size() / sizeof(float));
      addresses.back() = reinterpret_cast<std::byte*>(values.back().data());
    }
  }
}

TEST(Scratch, StridedConvolutionsKeepToTheirWorkspace) {
  std::unique_ptr<Backend> backend;
  try {
    backend = make_backend("cpu");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  int tasks = 0;
  for (const std::int64_t kernel : {1, 3})
    for (const std::int64_t stride : {2, 3})
      for (const std::int64_t from : {1, 3, 4, 15, 16, 17, 40})
        for (const std::int64_t to : {3, 16, 20}) {
          Builder net("strided");
          const Value x = net.convolution(net.input({1, 2, 11, 10}),
                                          {.channels = from, .window = Window::square(1), .groups = 1, .bias = true});
          const Value y = net.convolution(
              x, {.channels = to, .window = Window::square(kernel, stride, kernel / 2), .groups = 1, .bias = true});
          net.softmax_cross_entropy(net.fully_connected(y, {.channels = 2, .bias = true}));
          Step step = build_step(std::make_shared<Network>(std::move(net).build()),
                                 {.batch = 2, .rules = Rules::minimal, .training = true, .optimizer = {}});
          backend->annotate(step);
          for (std::size_t t = 0; t < step.ordered_tasks; ++t) {
            const Bytes workspace = step.algorithms_of(TaskId(t)).front().workspace;
            if (workspace.is_zero() || step.layer_kind(step.tasks[t]) != LayerKind::convolution) continue;
            std::vector<Fenced> fenced;
            std::vector<std::byte*> operands;
            for (const Operand& operand : step.operands_of(TaskId(t)))
              fenced.emplace_back(step.storage(step.tensor(operand.tensor).storage).bytes.size());
            fenced.emplace_back(workspace.size());
            for (Fenced& memory : fenced) operands.push_back(memory.start());
            const StepState state;
            backend->prepare(step, TaskId(t), 0)(Launch{operands.data(), operands.back(), &state});
            for (const Fenced& memory : fenced)
              EXPECT_TRUE(memory.intact()) << task_name(step, TaskId(t)) << ", kernel " << kernel << ", stride "
                                           << stride << ", " << from << " to " << to << " channels";
            ++tasks;
          }
        }
  EXPECT_GT(tasks, 100);
}

}  // namespace
}  // namespace tide
