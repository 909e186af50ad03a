#include "cost/topology.h"

#include <cmath>

#include "base/error.h"

namespace tide {
namespace {

void require_rate(double rate, std::string_view source, std::string_view what) {
  if (!(std::isfinite(rate) && rate > 0))
    throw Error("{}: {} has {} bytes per second; give a number above 0", source, what, rate);
}

void require_latency(double seconds, std::string_view source, std::string_view what) {
  if (!(std::isfinite(seconds) && seconds >= 0 && seconds < 1))
    throw Error("{}: {} has a latency of {} seconds; give 0 or more, below 1", source, what, seconds);
}

void require_link(const TreeLink& link, std::string_view source, std::string_view what) {
  require_rate(link.up, source, what);
  require_rate(link.down, source, what);
  require_latency(link.latency_seconds, source, what);
  if (!(link.both_share > 0 && link.both_share <= 1))
    throw Error("{}: {} keeps {} of its rate with both ways busy; give a share above 0, at most 1", source, what,
                link.both_share);
}

}  // namespace

std::vector<DevicePlace> device_places(const Topology& topology) {
  std::vector<DevicePlace> places;
  std::size_t group = 0;
  for (std::size_t h = 0; h < topology.hosts.size(); ++h)
    for (std::size_t s = 0; s < topology.hosts[h].switches.size(); ++s, ++group)
      for (std::size_t d = 0; d < topology.hosts[h].switches[s].devices.size(); ++d) places.push_back({h, s, d, group});
  return places;
}

const DeviceSlot& slot_of(const Topology& topology, const DevicePlace& place) {
  return topology.hosts[place.host].switches[place.switch_in_host].devices[place.device_in_switch];
}

Topology first_devices(const Topology& topology, std::size_t devices) {
  const std::size_t all = device_count(topology);
  if (devices == 0 || devices > all)
    throw Error("topology '{}' has {} devices, not {}; ask for 1 to {} of them, or give another", topology.name, all,
                devices, all);
  Topology part{topology.name, {}};
  for (const HostSlot& host : topology.hosts) {
    if (devices == 0) break;
    HostSlot kept = host;
    kept.switches.clear();
    for (const SwitchSlot& each : host.switches) {
      if (devices == 0) break;
      SwitchSlot some = each;
      some.devices.resize(std::min(devices, some.devices.size()));
      devices -= some.devices.size();
      kept.switches.push_back(std::move(some));
    }
    part.hosts.push_back(std::move(kept));
  }
  return part;
}

void require_valid(const Topology& topology, std::string_view source) {
  std::size_t devices = 0;
  for (std::size_t h = 0; h < topology.hosts.size(); ++h) {
    const HostSlot& host = topology.hosts[h];
    const std::string name = fmt::format("host {}", h);
    if (topology.hosts.size() > 1) require_link(host.network, source, name + ", its network");
    require_rate(host.memory_bytes_per_second, source, name + ", its memory");
    if (host.switches.empty()) throw Error("{}: {} has no switches; give it one", source, name);
    for (const SwitchSlot& each : host.switches) {
      require_link(each.link, source, name + ", a switch");
      if (each.devices.empty()) throw Error("{}: a switch of {} has no devices; give it one", source, name);
      devices += each.devices.size();
      for (const DeviceSlot& device : each.devices) {
        require_link(device.link, source, name + ", a device");
        if (device.peer_group < 0) continue;
        require_rate(device.peer_bytes_per_second, source, name + ", a direct link");
        require_latency(device.peer_latency_seconds, source, name + ", a direct link");
      }
    }
  }
  if (devices == 0 || devices > kMostDevices)
    throw Error("{}: it has {} devices; give 1 to {}", source, devices, kMostDevices);
}

Topology default_topology(std::size_t devices, const DeviceSheet& sheet) {
  const TreeLink link{sheet.link_alone, sheet.link_alone, sheet.link_both / sheet.link_alone, 0};
  // Four channels of DDR4-2400 are 77 GB/s, of which copies and sums reach four fifths.
  HostSlot host{.network = {}, .memory_bytes_per_second = 60e9, .peer_to_peer = true, .switches = {}};
  constexpr std::size_t kPerSwitch = 2;
  for (std::size_t first = 0; first < devices; first += kPerSwitch)
    host.switches.push_back(
        {link, std::vector<DeviceSlot>(std::min(kPerSwitch, devices - first), DeviceSlot{.link = link})});
  return {fmt::format("{} {}, two per switch", devices, sheet.name), {std::move(host)}};
}

Topology find_topology(const std::string& name_or_file) {
  std::string known;
  for (const Topology& topology : named_topologies()) {
    if (topology.name == name_or_file) return topology;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", topology.name);
  }
  if (!std::filesystem::exists(name_or_file))
    throw Error("there is no topology '{}', nor such a file; the names are {}", name_or_file, known);
  return read_topology(name_or_file);
}

}  // namespace tide
