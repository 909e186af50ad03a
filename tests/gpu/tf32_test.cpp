// TF32 products against the double-precision reference: ten bits of mantissa for the operands,
// fp32 sums.
#include "backend/compare_tasks.h"
#include "backend/network_cases.h"
#include "network/kind.h"

namespace tide::test {
namespace {

constexpr double kTf32Tolerance = 2e-3;

class Tf32Test : public testing::TestWithParam<NetworkCase> {};

TEST_P(Tf32Test, IsWithinItsTolerance) {
  if (tested_backend() == nullptr) GTEST_SKIP() << no_backend();
  static const std::unique_ptr<Backend> backend = make_backend("cuda", BackendOptions{});
  Step step = build_step(GetParam().network(), step_options(GetParam().batch));
  compare_all_tasks(*backend, step, kTf32Tolerance);
}

std::vector<NetworkCase> tf32_cases() {
  std::vector<NetworkCase> all;
  for (const OperatorRecord& record : operator_table())
    if (description_of(record.kind).product != Product::none)
      all.insert(all.end(), record.cases.begin(), record.cases.end());
  const auto wide = [](ConvolutionOptions options) {
    return [options](Builder& net, Value x) { return net.convolution(x, options); };
  };
  all.push_back(
      {"wide_3x3", 4, {1, 64, 14, 14}, wide({.channels = 64, .window = Window::square(3, 1, 1), .bias = false})});
  all.push_back({"wide_1x1", 4, {1, 64, 14, 14}, wide({.channels = 128, .bias = false})});
  all.push_back(
      {"image_7x7", 2, {1, 3, 23, 21}, wide({.channels = 32, .window = Window::square(7, 2, 3), .bias = false})});
  all.push_back({"image_11x11", 2, {1, 3, 31, 35}, wide({.channels = 32, .window = Window::square(11, 4)})});
  all.push_back(
      {"image_asymmetric", 2, {1, 3, 16, 16}, wide({.channels = 8, .window = window(5, 5, 2, 3, 2, 0, 1, 1)})});
  all.push_back(
      {"wide_stride", 4, {1, 64, 14, 14}, wide({.channels = 64, .window = Window::square(3, 2, 1), .bias = false})});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, Tf32Test, testing::ValuesIn(tf32_cases()),
                         [](const auto& entry) { return entry.param.name; });

}  // namespace
}  // namespace tide::test
