// Depthwise convolutions by kernels of our own: every window, stride and padding that they take, on sides that fill
// strips and tiles and on those that do not, and on channels in one block and in several.
#include "backend/compare_tasks.h"
#include "backend/network_cases.h"

namespace tide::test {
namespace {

struct DepthwiseCase {
  std::int64_t batch, channels, height, width, kernel, stride, pad_top, pad_left, pad_bottom, pad_right;
  [[nodiscard]] std::string name() const {
    return fmt::format("n{}c{}_{}x{}_k{}s{}p{}{}{}{}", batch, channels, height, width, kernel, stride, pad_top,
                       pad_left, pad_bottom, pad_right);
  }
  [[nodiscard]] NetworkPtr network(bool bias) const {
    Builder net("depthwise");
    Value x = net.convolution(net.input({1, 3, height, width}), {.channels = channels});
    Window window = Window::square(kernel, stride);
    window.pad_top = pad_top, window.pad_left = pad_left, window.pad_bottom = pad_bottom, window.pad_right = pad_right;
    x = net.convolution(net.tanh(x), {.channels = channels, .window = window, .groups = channels, .bias = bias});
    x = net.fully_connected(net.global_average_pool(net.tanh(x)), {.channels = 5});
    net.softmax_cross_entropy(x);
    return std::make_shared<const Network>(std::move(net).build());
  }
};

void PrintTo(const DepthwiseCase& entry, std::ostream* out) { *out << entry.name(); }

class DepthwiseTest : public testing::TestWithParam<DepthwiseCase> {
 protected:
  void SetUp() override {
    if (tested_backend() == nullptr) GTEST_SKIP() << no_backend();
  }
  // Whether the first algorithm of each task of the convolution is the one that this is about.
  static void expect_own_kernels(Backend& backend, Step step) {
    backend.annotate(step);
    int found = 0;
    for (std::size_t t = 0; t < step.tasks.size(); ++t)
      if (task_name(step, TaskId(t)).starts_with("convolution2 ") &&
          step.algorithms_of(TaskId(t))[0].name == "depthwise")
        ++found;
    EXPECT_EQ(found, 4);  // forward, its replay, and both ways back
  }
};

TEST_P(DepthwiseTest, MatchesReference) {
  Step step = build_step(GetParam().network(true), step_options(GetParam().batch));
  expect_own_kernels(*tested_backend(), step);
  compare_all_tasks(*tested_backend(), step, kTolerance, is_first_sum);
}

TEST_P(DepthwiseTest, MatchesReferenceInBf16) {
  static const std::unique_ptr<Backend> backend = make_backend("cuda", {.precision = Precision::bf16});
  StepOptions options = step_options(GetParam().batch);
  options.activations = DataType::bf16;
  Step step = build_step(GetParam().network(false), options);
  if (GetParam().channels % 8 == 0) expect_own_kernels(*backend, step);
  compare_all_tasks(*backend, step, NetworkCase{}.bf16_tolerance, is_first_sum);
}

std::vector<DepthwiseCase> depthwise_cases() {
  std::vector<DepthwiseCase> cases;
  for (const std::int64_t kernel : {3, 5})
    for (const std::int64_t stride : {1, 2}) {
      const std::int64_t half = kernel / 2;
      for (const auto& [channels, height, width] :
           std::vector<std::array<std::int64_t, 3>>{{8, 7, 7}, {72, 9, 14}, {20, 14, 17}, {96, 12, 21}})
        cases.push_back({3, channels, height, width, kernel, stride, half, half, half, half});
      cases.push_back({2, 16, 11, 13, kernel, stride, 0, 0, 0, 0});
      cases.push_back({2, 16, 10, 12, kernel, stride, 0, 1, half, 2});          // as other frameworks pad
      cases.push_back({2, 16, 6, 5, kernel, stride, kernel - 1, 2, 1, half});   // a window beside the image
      cases.push_back({5, 8, 40, 40, kernel, stride, half, half, half, half});  // sums in several parts
      cases.push_back({1, 640, 4, 3, kernel, stride, half, half, half, half});  // several blocks of channels
    }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, DepthwiseTest, testing::ValuesIn(depthwise_cases()),
                         [](const auto& entry) { return entry.param.name(); });

}  // namespace
}  // namespace tide::test
