// A replay must give the very bits that its forward task gave, dropout's mask and batch
// norm's statistics included; and results must not depend on the run.
#include "backend/compare_tasks.h"
#include "backend/network_cases.h"

namespace tide::test {
namespace {

class ReplayTest : public testing::TestWithParam<NetworkCase> {
 protected:
  static void check(Backend& backend) {
    Step built = build_step(GetParam().network(), step_options(GetParam().batch));
    backend.annotate(built);
    expect_equal_replays(backend, std::make_shared<const Step>(std::move(built)));
  }
};

TEST_P(ReplayTest, OfTestedBackendGivesTheSameBits) {
  for (const int threads : {1, 3}) {
    const auto backend = tested_backend(threads);
    if (backend == nullptr) GTEST_SKIP() << no_backend();
    check(*backend);
  }
}

TEST_P(ReplayTest, OfReferenceGivesTheSameBits) { check(*make_backend("reference")); }

INSTANTIATE_TEST_SUITE_P(Cases, ReplayTest, testing::ValuesIn(all_cases()),
                         [](const auto& entry) { return entry.param.name; });
INSTANTIATE_TEST_SUITE_P(LargeCases, ReplayTest, testing::ValuesIn(large_cases()),
                         [](const auto& entry) { return entry.param.name; });

}  // namespace
}  // namespace tide::test
