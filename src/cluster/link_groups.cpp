#include "cluster/link_groups.h"

#include <map>

#include "base/error.h"

namespace tide {

std::string link_key(const std::string& bus_id, std::span<const PciBridge> bridges) {
  std::string topmost = bus_id;
  for (const PciBridge& bridge : bridges) {
    if (bridge.is_host) break;
    topmost = bridge.bus_id;
  }
  return topmost;
}

std::string find_link_key(const std::string& bus_id) {
  const std::optional<std::vector<PciBridge>> bridges = pci_bridges(bus_id);
  if (!bridges)
    throw Error("the machine's PCIe tree has no device {}; say with --topology which devices share a switch", bus_id);
  return link_key(bus_id, *bridges);
}

std::vector<LinkPlace> group_links(std::span<const std::string> hosts, std::span<const std::string> keys) {
  struct Group {
    std::size_t number = 0, size = 0;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  std::vector<LinkPlace> places;
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    const std::size_t next = groups.size();
    Group& group = groups.try_emplace({hosts[rank], keys[rank]}, Group{next, 0}).first->second;
    places.push_back({group.number, group.size++});
  }
  return places;
}

std::vector<LinkPlace> exchange_links(Communicator& communicator, const std::string& key) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < communicator.size(); ++rank) hosts.push_back(communicator.host(rank));
  return group_links(hosts, communicator.gather(key));
}

}  // namespace tide
