// Which ranks' devices share a link to their host.
#include "cluster/link_groups.h"

#include <gtest/gtest.h>

#include "cluster/threads.h"
#include "support/error_of.h"

namespace tide {
namespace {

TEST(LinkKey, IsTheTopmostBridgeBelowTheHost) {
  const PciBridge port{.bus_id = "0000:11:08.0"}, upstream{.bus_id = "0000:10:00.0"}, root{.bus_id = "0000:00:01.0"},
      host{.is_host = true};
  const std::string device = "0000:12:00.0";
  EXPECT_EQ(link_key(device, std::vector{port, upstream, root, host}), root.bus_id);
  EXPECT_EQ(link_key(device, std::vector{root, host}), root.bus_id);
  // What is above the host's bridge is of no matter, nor whether that is seen at all.
  EXPECT_EQ(link_key(device, std::vector{root, host, port}), root.bus_id);
  EXPECT_EQ(link_key(device, std::vector{port, root}), root.bus_id);
  EXPECT_EQ(link_key(device, std::vector{host}), device);
  EXPECT_EQ(link_key(device, {}), device);
}

// A machine by hand: two devices behind one switch, one at a port of its own, one at the host's bridge itself.
TEST(LinkKey, IsFoundInAMachine) {
  const std::string machine = TIDE_TEST_DATA "/cluster/two_switches.xml";
  const auto key_of = [&](const std::string& device) { return link_key(device, pci_bridges(device, machine).value()); };
  const std::string missing = test::error_of([&] { (void)pci_bridges("0000:12:00.0", machine); });
  if (!missing.empty()) {
    EXPECT_NE(missing.find("libhwloc-dev"), std::string::npos) << missing;
    GTEST_SKIP() << missing;
  }
  EXPECT_EQ(key_of("0000:12:00.0"), "0000:00:01.0");
  EXPECT_EQ(key_of("0000:13:00.0"), "0000:00:01.0");
  EXPECT_EQ(key_of("0000:20:00.0"), "0000:00:02.0");
  EXPECT_EQ(key_of("0000:00:1f.0"), "0000:00:1f.0");
  EXPECT_FALSE(pci_bridges("0000:77:00.0", machine));
  EXPECT_NE(test::error_of([] { (void)pci_bridges("0000:12:00.0", "/nowhere.xml"); }).find("/nowhere.xml"),
            std::string::npos);
}

TEST(LinkGroups, AreOneHostsRanksWithOneKey) {
  using Places = std::vector<LinkPlace>;
  const std::vector<std::string> here(4, "alpha"), both{"alpha", "beta", "alpha", "beta"};
  const std::vector<std::string> keys{"s", "t", "s", "t"}, same(4, "s");
  EXPECT_EQ(group_links(here, same), (Places{{0, 0}, {0, 1}, {0, 2}, {0, 3}}));
  EXPECT_EQ(group_links(here, keys), (Places{{0, 0}, {1, 0}, {0, 1}, {1, 1}}));
  EXPECT_EQ(group_links(both, same), (Places{{0, 0}, {1, 0}, {0, 1}, {1, 1}}));
}

TEST(LinkGroups, AreTheSameOnEveryRank) {
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(4, {"alpha", "alpha", "beta", "alpha"});
  on_ranks(ranks, [](Communicator& communicator) {
    const std::vector<LinkPlace> places = exchange_links(communicator, communicator.rank() == 1 ? "t" : "s");
    EXPECT_EQ(places, (std::vector<LinkPlace>{{0, 0}, {1, 0}, {2, 0}, {0, 1}}));
  });
}

}  // namespace
}  // namespace tide
