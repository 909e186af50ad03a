// The modelled convolution algorithms: which exist, what workspace they want, and that a
// step annotated with them lists them as the cost model times them.
#include "cost/convolution.h"

#include <gtest/gtest.h>

#include "cost/device_model.h"
#include "cost/devices.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {
namespace {

using Family = ConvolutionFamily;
using Pass = ConvolutionProblem::Pass;

// `side` pixels square, padded so that a dense convolution keeps them.
ConvolutionProblem square_problem(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t side,
                                  std::int64_t kernel, std::int64_t stride = 1) {
  ConvolutionProblem p;
  p.dense = stride == 1;
  p.batch = batch;
  p.in_channels = in, p.out_channels = out;
  p.in_height = p.in_width = side;
  p.out_height = p.out_width = side / stride;
  p.kernel_height = p.kernel_width = kernel;
  return p;
}

double mebibytes(Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 20); }

Step step_of(const std::string& model, std::int64_t batch, Rules rules = Rules::minimal) {
  return build_step(std::make_shared<Network>(make_model(model)),
                    {.batch = batch, .rules = rules, .training = true, .optimizer = {}});
}

TEST(Convolution, FamiliesHaveNames) {
  for (const Family family : kConvolutionFamilies) EXPECT_EQ(family_from_name(family_name(family)), family);
  EXPECT_EQ(family_from_name("default"), std::nullopt);
}

TEST(Convolution, TransformsAreForDenseSquareKernels) {
  const auto three = square_problem(32, 64, 64, 56, 3), five = square_problem(32, 96, 256, 27, 5),
             one = square_problem(32, 64, 256, 56, 1);
  const auto strided = square_problem(32, 64, 64, 56, 3, 2);
  EXPECT_TRUE(applies(Family::winograd, three));
  EXPECT_FALSE(applies(Family::winograd, five));
  EXPECT_TRUE(applies(Family::winograd_nonfused, five));
  EXPECT_TRUE(applies(Family::fft, five));
  EXPECT_FALSE(applies(Family::fft_tiling, five)) << "fits one tile";
  EXPECT_TRUE(applies(Family::fft_tiling, three));
  for (const Family family : {Family::winograd, Family::winograd_nonfused, Family::fft, Family::fft_tiling}) {
    EXPECT_FALSE(applies(family, one)) << family_name(family);
    EXPECT_FALSE(applies(family, strided)) << family_name(family);
    auto grouped = three;
    grouped.groups = 2;
    EXPECT_FALSE(applies(family, grouped)) << family_name(family);
  }
  auto weights = three;
  weights.pass = Pass::backward_weights;
  EXPECT_FALSE(applies(Family::winograd, weights));
  EXPECT_TRUE(applies(Family::winograd_nonfused, weights));
  EXPECT_FALSE(applies(Family::fft, square_problem(1, 8, 8, 512, 3))) << "planes are 256 x 256 at most";
}

// AlexNet's second convolution: planes of 32 x 17 complex numbers, for 200 x 96 inputs,
// 256 x 96 filters and 200 x 256 outputs.
TEST(Convolution, WorkspacesByHand) {
  const auto conv2 = square_problem(200, 96, 256, 27, 5);
  EXPECT_EQ(work_of(Family::fft, conv2).workspace.count(), 32LL * 17 * 8 * (200 * 96 + 256 * 96 + 200 * 256));
  EXPECT_EQ(work_of(Family::gemm, conv2).workspace.count(), 4LL * 200 * 96 * 25 * 27 * 27);
  EXPECT_EQ(work_of(Family::precomp_gemm, conv2).workspace.count(), 4LL * (96 * 25 + 27 * 27));
  EXPECT_EQ(work_of(Family::implicit_gemm, conv2).workspace.count(), 0);
  EXPECT_EQ(work_of(Family::winograd_nonfused, conv2).workspace.count(),
            4LL * 64 * (96 * 256 + (96 + 256) * 200 * 7 * 7));
  const auto conv3 = square_problem(200, 256, 384, 13, 3);
  EXPECT_EQ(work_of(Family::winograd, conv3).workspace.count(), 4LL * 16 * 256 * 384);
  EXPECT_EQ(work_of(Family::winograd_nonfused, conv3).workspace.count(),
            4LL * 36 * (256 * 384 + (256 + 384) * 200 * 4 * 4));
  EXPECT_EQ(work_of(Family::gemm, square_problem(32, 64, 256, 56, 1)).workspace.count(), 0);
}

TEST(Convolution, FourierWorkspacesAreHundredsOfMebibytes) {
  const double alexnet = mebibytes(work_of(Family::fft, square_problem(128, 96, 256, 27, 5)).workspace);
  EXPECT_GT(alexnet, 200);
  EXPECT_LT(alexnet, 500);
  const double vgg = mebibytes(work_of(Family::fft, square_problem(100, 64, 128, 112, 3)).workspace);
  EXPECT_GT(vgg, 500);
  EXPECT_LT(vgg, 4000);
  const auto first = square_problem(100, 64, 64, 224, 3);
  EXPECT_LT(work_of(Family::fft_tiling, first).workspace, work_of(Family::fft, first).workspace);
}

TEST(Convolution, MoreBatchOrChannelsNeverNeedLess) {
  for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
    for (const std::int64_t kernel : {1, 3, 5, 7}) {
      for (const std::int64_t stride : {1, 2}) {
        for (const Family family : kConvolutionFamilies) {
          auto small = square_problem(16, 32, 48, 28, kernel, stride);
          small.pass = pass;
          if (!applies(family, small)) continue;
          const ConvolutionWork base = work_of(family, small);
          for (const auto grow :
               {&ConvolutionProblem::batch, &ConvolutionProblem::in_channels, &ConvolutionProblem::out_channels}) {
            auto large = small;
            large.*grow *= 2;
            const ConvolutionWork more = work_of(family, large);
            EXPECT_GE(more.workspace, base.workspace) << family_name(family);
            EXPECT_GT(more.product_flops, base.product_flops) << family_name(family);
            EXPECT_GT(more.product_bytes, base.product_bytes) << family_name(family);
          }
        }
      }
    }
  }
}

TEST(Convolution, TransformsMultiplyLess) {
  const auto p = square_problem(32, 128, 128, 56, 3);
  const double direct = work_of(Family::implicit_gemm, p).product_flops;
  EXPECT_DOUBLE_EQ(direct, p.direct_flops());
  EXPECT_NEAR(direct / work_of(Family::winograd, p).product_flops, 2.25, 0.01);
  EXPECT_NEAR(direct / work_of(Family::winograd_nonfused, p).product_flops, 4, 0.01);
}

TEST(Convolution, ProblemsComeFromTheOperands) {
  const Step step = step_of("alexnet", 200);
  std::vector<Pass> passes;
  for (std::size_t t = 0; t < step.tasks.size(); ++t) {
    if (step.layer_names[step.tasks[t].layer.index()] != "conv2") continue;
    const auto p = convolution_of(step, TaskId(t));
    if (!p) continue;
    passes.push_back(p->pass);
    EXPECT_TRUE(p->dense);
    EXPECT_EQ(p->batch, 200);
    EXPECT_EQ(p->in_channels, 96);
    EXPECT_EQ(p->out_channels, 256);
    EXPECT_EQ(p->in_height, 27);
    EXPECT_EQ(p->out_width, 27);
    EXPECT_EQ(p->kernel_height, 5);
  }
  // Forward, its replay, and the two backward tasks; updates are none.
  EXPECT_EQ(passes.size(), 4U);
  EXPECT_EQ(std::count(passes.begin(), passes.end(), Pass::forward), 2);
}

class AnnotatedSteps : public testing::TestWithParam<const char*> {};

TEST_P(AnnotatedSteps, FastestFirstAndOneWithoutWorkspace) {
  for (const char* name : {"k40c", "titan-xp", "h200"}) {
    const Device device = find_device(name).rates();
    const DeviceModel cost(device);
    Step step = step_of(GetParam(), 16);
    std::vector<Bytes> before;
    for (const Storage& storage : step.storages) before.push_back(storage.bytes);
    annotate_for(step, device);
    for (std::size_t t = 0; t < step.tasks.size(); ++t) {
      const TaskId id(t);
      const auto& algorithms = step.algorithms_of(id);
      ASSERT_FALSE(algorithms.empty());
      EXPECT_TRUE(std::any_of(algorithms.begin(), algorithms.end(), [](const Algorithm& a) {
        return a.workspace.is_zero();
      })) << task_name(step, id);
      for (std::size_t a = 0; a < algorithms.size(); ++a) {
        const double seconds = cost.task_seconds(step, id, a);
        EXPECT_GT(seconds, 0);
        EXPECT_LE(cost.task_seconds(step, id, a == 0 ? 0 : a - 1), seconds)
            << task_name(step, id) << " " << algorithms[a].name;
      }
      EXPECT_EQ(step.tasks[t].algorithms == 0, !convolution_of(step, id)) << task_name(step, id);
    }
    for (std::size_t s = 0; s < before.size(); ++s) EXPECT_EQ(step.storages[s].bytes, before[s]);
    for (std::size_t a = 0; a < step.algorithm_sets.size(); ++a)
      for (std::size_t b = a + 1; b < step.algorithm_sets.size(); ++b) {
        const auto same = [](const Algorithm& x, const Algorithm& y) {
          return x.name == y.name && x.workspace == y.workspace;
        };
        EXPECT_FALSE(std::equal(step.algorithm_sets[a].begin(), step.algorithm_sets[a].end(),
                                step.algorithm_sets[b].begin(), step.algorithm_sets[b].end(), same));
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, AnnotatedSteps,
                         testing::Values("lenet", "alexnet", "vgg16", "resnet50", "inception-v4", "densenet121", "fcn",
                                         "lstm:2,64,4"),
                         [](const auto& row) {
                           std::string name = row.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

TEST(AnnotatedStep, ADeepNetworkHasFewSets) {
  Step step = step_of("resnet:6,32,300,6", 16);
  annotate_for(step, find_device("k40c").rates());
  EXPECT_GT(step.ordered_tasks, 5000U);
  EXPECT_LT(step.algorithm_sets.size(), 100U);
}

TEST(AnnotatedStep, MatrixUnitsMakeWorkspacesPointless) {
  // On TF32 units plain products beat the transforms, which need full precision.
  Step step = step_of("vgg16", 64);
  annotate_for(step, find_device("h200").rates());
  for (std::size_t t = 0; t < step.ordered_tasks; ++t)
    EXPECT_LT(step.algorithms_of(TaskId(t))[0].workspace, Bytes(1 << 20));
  Step older = step_of("vgg16", 64);
  annotate_for(older, find_device("k40c").rates());
  Bytes largest;
  for (std::size_t t = 0; t < older.ordered_tasks; ++t)
    largest = std::max(largest, older.algorithms_of(TaskId(t))[0].workspace);
  EXPECT_GT(largest, Bytes(100 << 20));
}

TEST(DeviceModel, FasterDevicesAreFasterAndCopiesFollowTheLink) {
  Step step = step_of("resnet50", 32);
  const Device old = find_device("k40c").rates(), recent = find_device("h200").rates();
  annotate_for(step, old);
  double slow = 0, fast = 0;
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) slow += DeviceModel(old).task_seconds(step, TaskId(t), 0);
  annotate_for(step, recent);
  for (std::size_t t = 0; t < step.ordered_tasks; ++t) fast += DeviceModel(recent).task_seconds(step, TaskId(t), 0);
  EXPECT_GT(slow, 10 * fast);
  EXPECT_NEAR(DeviceModel(old).copy_seconds(Bytes(8'000'000'000), Tier::device, Tier::host), 1, 0.01);
  EXPECT_EQ(DeviceModel(old).name(), "k40c");
}

}  // namespace
}  // namespace tide
