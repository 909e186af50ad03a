// Which ranks' devices share a link to their host: those behind one port of the host's PCIe tree. Found by the devices'
// bus ids, and agreed on by all ranks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/communicator.h"

namespace tide {

// What a device hangs on, from itself up to the root of the machine.
struct PciBridge {
  std::string bus_id = {};  // "0000:3a:00.0"; empty where it has none
  bool is_host = false;     // from the processor to PCIe
};
// Of the device with that bus id; none: the machine does not know it. `machine` is a file that describes one, as
// hwloc's lstopo writes it (XML); empty: this one. Throws an Error where the build has no hwloc.
[[nodiscard]] std::optional<std::vector<PciBridge>> pci_bridges(const std::string& bus_id,
                                                                const std::string& machine = {});

// The topmost bridge below the host's: all that goes to host memory from devices behind it shares its link. A device
// that hangs on the host's bridge itself shares its link with nobody, and has its own bus id.
[[nodiscard]] std::string link_key(const std::string& bus_id, std::span<const PciBridge> bridges);
// Of a device of this machine. Throws an Error where it cannot be told.
[[nodiscard]] std::string find_link_key(const std::string& bus_id);

// By rank: which group it is in, counted by their first ranks, and which of it.
struct LinkPlace {
  std::size_t group = 0, index = 0;
  friend bool operator==(const LinkPlace&, const LinkPlace&) = default;
};
// Those on one host with the same key are a group. REQUIRES: as many keys as hosts.
[[nodiscard]] std::vector<LinkPlace> group_links(std::span<const std::string> hosts, std::span<const std::string> keys);
// The same of all ranks, each of which brings its key.
[[nodiscard]] std::vector<LinkPlace> exchange_links(Communicator& communicator, const std::string& key);

}  // namespace tide
