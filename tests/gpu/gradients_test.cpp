// Gradients of whole networks on a GPU against PyTorch's in double precision (golden/README.md).
// golden/torch_distance.py takes the same measure of PyTorch's own; benchmarks/results has both.
#include <gtest/gtest.h>

#include "golden/distance.h"

namespace tide {
namespace {

struct Case {
  const char* file;
  Precision precision;
  bool fuse;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const std::string file = info.param.file;
  const char* const precision = info.param.precision == Precision::fp32   ? "fp32"
                                : info.param.precision == Precision::tf32 ? "tf32"
                                                                          : "bf16";
  return fmt::format("{}_{}{}", file.substr(0, file.find('.')), precision, info.param.fuse ? "_fused" : "");
}

class GpuGradients : public testing::TestWithParam<Case> {};

// Ten bits of a product (TF32), or eight of a layer's output (bf16), over the depth of a network put
// ReLUs on the other side of 0, and most gradients at batch 4 then differ by some hundredths or tenths:
// PyTorch's by 0.08 and 0.3 in the median, where ours do by 0.06 and 0.27 (resnet50). A gradient that is
// mathematically zero may be off by many times its norm, so the worst is bounded in fp32 alone.
TEST_P(GpuGradients, AreCloseToDoublePrecision) {
  std::unique_ptr<Backend> backend;
  try {
    backend = make_backend("cuda", {.precision = GetParam().precision});
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const golden::Reference reference = golden::read_reference(TIDE_TEST_DATA, GetParam().file);
  StepOptions options = test::golden_step(reference);
  options.fuse = GetParam().fuse;
  options.activations = GetParam().precision == Precision::bf16 ? DataType::bf16 : DataType::f32;
  test::Job job(test::plan_for(test::golden_network(reference), *backend, "baseline", options), *backend, {});
  const test::Distance found = test::distance(test::run_on(job), reference);
  const bool exact = GetParam().precision == Precision::fp32;
  const bool half = GetParam().precision == Precision::bf16;
  EXPECT_LT(found.loss, exact ? 1e-6 : half ? 3e-2 : 2e-3);
  EXPECT_LT(found.gradients.of_half(), exact ? 2e-5 : half ? 0.6 : 0.15);
  if (exact) {
    EXPECT_LT(found.gradients.largest(), 5e-3);
  }
  EXPECT_LT(found.statistics.largest(), exact ? 1e-4 : half ? 0.1 : 1e-2);
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const char* const file : {"resnet50.json", "inception_v3.json", "densenet121.json", "lstm.json"})
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16})
      for (const bool fuse : {false, true}) result.push_back({file, precision, fuse});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Torch, GpuGradients, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace tide
