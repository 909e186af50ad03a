// tide devices, and what plans for a device look like.
#include <nlohmann/json.hpp>

#include "cli/run_tide.h"

namespace tide::test {
namespace {

using nlohmann::json;

TEST(DevicesCommand, ListsThem) {
  const ProgramRun text = run_tide("devices");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_LE(widest_line(text.out), 120U);
  const json devices = json::parse(run_tide("devices --json").out)["devices"];
  EXPECT_GE(devices.size(), 12U);
  for (const json& device : devices) {
    EXPECT_NE(text.out.find(device["name"].get<std::string>()), std::string::npos);
    EXPECT_GT(device["reached_flops_per_second"].get<double>(), 0);
    EXPECT_LE(device["pageable_link_bytes_per_second"].get<double>(), device["link_bytes_per_second"].get<double>());
  }
}

TEST(DevicesCommand, BadCostArgumentsAreRefused) {
  expect_refusal("compare lenet --device k41", 1, {"k41", "k40c"});
  expect_refusal("compare lenet --device k40c --backend null", 1, {"--device", "--backend"});
  expect_refusal("compare lenet --device k40c --profile p.json", 1, {"--device", "--profile"});
  expect_refusal("compare lenet --profile nowhere.json --backend null", 1, {"nowhere.json"});
  expect_refusal("compare lenet --memory device --backend null", 1, {"--device"});
  expect_refusal("compare lenet --device generic-cpu --memory device", 1, {"generic-cpu"});
  expect_refusal("compare lenet --device k40c --link fast", 1, {"fast", "GB/s"});
  expect_refusal("compare lenet --device k40c --link 0GB/s", 1, {"0GB/s"});
  expect_refusal("compare lenet --link pageable --backend null", 1, {"--device"});
}

double predicted(const std::string& arguments, const std::string& policy) {
  const ProgramRun run = run_tide("compare " + arguments + " --json");
  EXPECT_EQ(run.code, 0) << run.err;
  const json result = json::parse(run.out);
  for (const json& entry : result["policies"])
    if (entry["policy"] == policy) return entry["predicted_seconds"].get<double>();
  ADD_FAILURE() << policy << " is missing";
  return 0;
}

TEST(DevicesCommand, DevicesAndLinksChangeTheTimes) {
  EXPECT_GT(predicted("resnet50 --device k40c", "liveness"), 5 * predicted("resnet50 --device h200", "liveness"));
  // Only what moves depends on the link.
  EXPECT_EQ(predicted("alexnet --device k40c --link 1GB/s", "liveness"),
            predicted("alexnet --device k40c", "liveness"));
  EXPECT_GT(predicted("alexnet --device k40c --link 500MB/s", "offload"),
            predicted("alexnet --device k40c", "offload"));
  EXPECT_GT(predicted("alexnet --device h200 --link pageable", "offload"),
            0.9 * predicted("alexnet --device h200", "offload"));
}

}  // namespace
}  // namespace tide::test
