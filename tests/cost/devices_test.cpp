#include "cost/devices.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace tide {
namespace {

TEST(Devices, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const DeviceSheet& sheet : device_sheets()) {
    EXPECT_TRUE(names.insert(sheet.name).second) << sheet.name;
    EXPECT_EQ(&find_device(sheet.name), &sheet);
  }
  for (const char* name : {"k40c", "k40m", "titan-x", "titan-xp", "p100", "v100", "a100", "h100", "h200", "rtx3060",
                           "rtx3090", "rtx4090", "generic-cpu"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Devices, UnknownNamesAreToldTheKnownOnes) {
  try {
    (void)find_device("k41");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("k41"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("k40c"), std::string::npos);
  }
}

TEST(Devices, RatesStayBelowThePeaks) {
  for (const DeviceSheet& sheet : device_sheets()) {
    SCOPED_TRACE(sheet.name);
    const Device rates = sheet.rates();
    EXPECT_GT(rates.flops_per_second, 0);
    EXPECT_LE(rates.fp32_flops_per_second, sheet.fp32_flops);
    EXPECT_LE(rates.flops_per_second, std::max(sheet.fp32_flops, sheet.tf32_flops));
    EXPECT_GE(rates.flops_per_second, rates.fp32_flops_per_second);
    EXPECT_LE(rates.memory_bytes_per_second, sheet.memory_bytes_per_second);
    // The host is always the slow side: that is why moving needs planning.
    EXPECT_LT(rates.link_bytes_per_second, rates.memory_bytes_per_second);
    EXPECT_LE(sheet.link_both, sheet.link_alone);
    EXPECT_LT(sheet.pageable_link(), sheet.link_both);
    EXPECT_EQ(rates.memory, sheet.memory());
  }
}

TEST(Devices, FiguresOfThePaperAndOfTheMeasuredLink) {
  EXPECT_EQ(find_device("k40c").memory(), Bytes(12LL << 30));
  EXPECT_EQ(find_device("k40c").rates().link_bytes_per_second, 8e9);
  EXPECT_EQ(find_device("h200").link_alone, 55e9);
  EXPECT_EQ(find_device("h200").rates().link_bytes_per_second, 46.5e9);
  // TF32 units exist from Ampere on.
  EXPECT_EQ(find_device("v100").tf32_flops, 0);
  EXPECT_GT(find_device("a100").tf32_flops, find_device("a100").fp32_flops);
}

TEST(Devices, TheDefaultIsOneOfThem) {
  const Device sheet = find_device("generic-cpu").rates(), usual = generic_cpu();
  EXPECT_EQ(sheet.name, usual.name);
  EXPECT_EQ(sheet.flops_per_second, usual.flops_per_second);
  EXPECT_EQ(sheet.memory_bytes_per_second, usual.memory_bytes_per_second);
  EXPECT_EQ(sheet.link_bytes_per_second, usual.link_bytes_per_second);
  EXPECT_DOUBLE_EQ(sheet.launch_seconds, usual.launch_seconds);
  EXPECT_EQ(sheet.disk_bytes_per_second, usual.disk_bytes_per_second);
}

}  // namespace
}  // namespace tide
