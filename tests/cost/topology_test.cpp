// Topologies: those that are written down, files that are read back equal, and damaged ones that are refused by name.
#include "cost/topology.h"

#include <gtest/gtest.h>

#include <set>

#include "support/error_of.h"

namespace tide {
namespace {

TEST(Topology, NamesAreUniqueFoundAndValid) {
  std::set<std::string> names;
  for (const Topology& topology : named_topologies()) {
    SCOPED_TRACE(topology.name);
    EXPECT_TRUE(names.insert(topology.name).second);
    EXPECT_EQ(find_topology(topology.name), topology);
    EXPECT_NO_THROW(require_valid(topology, topology.name));
  }
  EXPECT_EQ(names, (std::set<std::string>{"8xh100-nvlink", "8xrtx3090-pcie", "4xp100-pcie", "superneurons"}));
}

TEST(Topology, DevicesAreCountedThroughHostsAndSwitches) {
  const Topology& cluster = find_topology("superneurons");
  const std::vector<DevicePlace> places = device_places(cluster);
  ASSERT_EQ(places.size(), 4U);
  EXPECT_EQ(places[1].host, 0U);
  EXPECT_EQ(places[2].host, 1U);
  EXPECT_EQ(places[2].switch_in_all, 1U);
  EXPECT_EQ(places[3].device_in_switch, 1U);
}

TEST(Topology, ByDefaultTwoDevicesShareASwitch) {
  for (const std::size_t devices : {1U, 2U, 3U, 8U}) {
    const Topology topology = default_topology(devices, find_device("p100"));
    EXPECT_NO_THROW(require_valid(topology, "default"));
    EXPECT_EQ(device_count(topology), devices);
    EXPECT_EQ(topology.hosts.front().switches.size(), (devices + 1) / 2);
    EXPECT_EQ(topology.hosts.front().switches.front().link.up, find_device("p100").link_alone);
  }
}

TEST(Topology, TheFirstDevicesOfOne) {
  const Topology all = find_topology("4xp100-pcie");
  EXPECT_EQ(first_devices(all, 4), all);
  const Topology three = first_devices(all, 3);
  EXPECT_EQ(device_count(three), 3U);
  EXPECT_EQ(three.hosts.front().switches.back().devices.size(), 1U);
  EXPECT_NE(test::error_of([&] { (void)first_devices(all, 5); }).find("4 devices, not 5"), std::string::npos);
}

TEST(Topology, FilesAreReadBackEqual) {
  for (const Topology& topology : named_topologies())
    EXPECT_EQ(topology_from_json(topology_to_json(topology), "it"), topology) << topology.name;
}

constexpr const char* kFile = R"({"tidepool_topology": 1, "name": "two boxes", "hosts": [
  {"count": 2, "network": {"bytes_per_second": 6e9}, "switches": [
    {"count": 2, "link": {"up": 12e9, "down": 11e9, "both_share": 0.8}, "devices": [
      {"count": 2, "link": {"bytes_per_second": 12e9, "latency_seconds": 5e-6}}]}],
   "peers": [{"devices": [0, 3], "bytes_per_second": 20e9}]}]})";

TEST(Topology, CountsInFilesRepeat) {
  const Topology topology = topology_from_json(kFile, "it");
  EXPECT_EQ(device_count(topology), 8U);
  EXPECT_EQ(topology.hosts[1].switches[1].link.down, 11e9);
  EXPECT_EQ(topology.hosts[0].switches[1].devices[1].peer_group, 0);
  EXPECT_EQ(topology.hosts[0].switches[0].devices[1].peer_group, -1);
}

std::string damaged(const std::string& from, const std::string& to) {
  std::string text = kFile;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Topology, DamagedFilesAreRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> damages{
      {damaged("\"tidepool_topology\": 1", "\"tidepool_topology\": 2"), "version 2"},
      {damaged("\"tidepool_topology\": 1,", ""), "not a Tidepool topology"},
      {damaged("\"count\": 2, \"network\"", "\"count\": 0, \"network\""), "count"},
      {damaged("\"count\": 2, \"network\"", "\"count\": 4000, \"network\""), "more than 4096 devices"},
      {damaged("\"count\": 2, \"network\"", "\"count\": 1e99, \"network\""), "count"},
      {damaged("\"count\": 2, \"link\": {\"up\"", "\"count\": -1, \"link\": {\"up\""), "count"},
      {damaged("{\"bytes_per_second\": 6e9}", "{\"bytes_per_second\": 0}"), "network"},
      {damaged("\"both_share\": 0.8", "\"both_share\": 1.5"), "share"},
      {damaged("\"latency_seconds\": 5e-6", "\"latency_seconds\": -1"), "latency"},
      {damaged("\"latency_seconds\"", "\"latency\""), "unknown field"},
      {damaged("[0, 3]", "[0, 4]"), "no device 4"},
      {damaged("[0, 3]", "[0, 0]"), "two groups"},
      {damaged("[0, 3]", "\"all\""), "devices"},
      {damaged("20e9}]}]}", "20e9}"), "not JSON"},
      {damaged("\"network\": {\"bytes_per_second\": 6e9}", "\"network\": 6"), "expected an object"},
  };
  for (const auto& [text, message] : damages) {
    const std::string error = test::error_of([&] { (void)topology_from_json(text, "net.json"); });
    EXPECT_NE(error.find("net.json"), std::string::npos) << error;
    EXPECT_NE(error.find(message), std::string::npos) << error << " lacks " << message;
  }
}

TEST(Topology, UnknownNamesAreToldTheKnownOnes) {
  const std::string error = test::error_of([] { (void)find_topology("9xh100"); });
  EXPECT_NE(error.find("9xh100"), std::string::npos);
  EXPECT_NE(error.find("8xh100-nvlink"), std::string::npos);
}

}  // namespace
}  // namespace tide
