#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file_text.h"
#include "cost/topology.h"

namespace tide {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kTopologyVersion = 1;

// The fields of one object of a file: each is fetched once, and what nobody fetched is an error.
class TopologyFields {
 public:
  TopologyFields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) throw Error("{}: expected an object, found {}", where_, object.type_name());
  }

  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }
  const json* find(const char* key) {
    const auto found = object_.find(key);
    if (found == object_.end()) return nullptr;
    fetched_.emplace_back(key);
    return &*found;
  }
  double number(const char* key, double otherwise) {
    const json* const value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number()) throw Error("{}: field '{}' must be a number", where_, key);
    return value->get<double>();
  }
  // At most kMostDevices, so that whatever is made from it is small.
  std::size_t count(const char* key, std::size_t otherwise) {
    const json* const value = find(key);
    if (value == nullptr) return otherwise;
    return counted(*value, key, 1);
  }
  [[nodiscard]] std::size_t counted(const json& value, const char* key, std::uint64_t least) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least || value.get<std::uint64_t>() > kMostDevices)
      throw Error("{}: field '{}' must be a whole number of {} to {}", where_, key, least, kMostDevices);
    return value.get<std::size_t>();
  }
  const json& list(const char* key) {
    const json* const value = find(key);
    if (value == nullptr || !value->is_array() || value->empty() || value->size() > kMostDevices)
      throw Error("{}: field '{}' must be a list of 1 to {}", where_, key, kMostDevices);
    return *value;
  }
  void finish() const {
    for (const auto& [key, value] : object_.items())
      if (std::find(fetched_.begin(), fetched_.end(), key) == fetched_.end())
        throw Error("{}: unknown field {}; remove it or correct its name", where_,
                    json(key).dump(-1, ' ', true, json::error_handler_t::replace));
  }

 private:
  const json& object_;
  std::string where_;
  std::vector<std::string> fetched_;
};

TreeLink read_tree_link(TopologyFields& parent, const char* key) {
  const json* const source = parent.find(key);
  if (source == nullptr) throw Error("{}: field '{}' is missing", parent.where(), key);
  TopologyFields fields(*source, fmt::format("{}, {}", parent.where(), key));
  const double both = fields.number("bytes_per_second", 0);
  TreeLink link{.up = fields.number("up", both),
                .down = fields.number("down", both),
                .both_share = fields.number("both_share", 1),
                .latency_seconds = fields.number("latency_seconds", 0)};
  fields.finish();
  return link;
}

// Adds `count` of them, if all of a host stay within what a topology can have.
template <typename Slot>
void add_slots(std::vector<Slot>& slots, const Slot& slot, std::size_t each, std::size_t count, std::size_t& devices,
               const std::string& where) {
  if (count * each > kMostDevices - devices)
    throw Error("{}: more than {} devices; take some away", where, kMostDevices);
  devices += count * each;
  slots.insert(slots.end(), count, slot);
}

SwitchSlot read_switch(TopologyFields& fields) {
  SwitchSlot slot{.link = read_tree_link(fields, "link"), .devices = {}};
  std::size_t devices = 0;
  for (const json& item : fields.list("devices")) {
    TopologyFields device(item, fields.where() + ", a device");
    const std::size_t count = device.count("count", 1);
    const DeviceSlot made{.link = read_tree_link(device, "link")};
    device.finish();
    add_slots(slot.devices, made, 1, count, devices, device.where());
  }
  return slot;
}

void read_peers(const json& source, std::int32_t group, HostSlot& host, const std::string& where) {
  TopologyFields fields(source, where + ", peers");
  const double rate = fields.number("bytes_per_second", 0), latency = fields.number("latency_seconds", 0);
  std::vector<DeviceSlot*> devices;
  for (SwitchSlot& each : host.switches)
    for (DeviceSlot& device : each.devices) devices.push_back(&device);
  for (const json& item : fields.list("devices")) {
    const std::size_t number = fields.counted(item, "devices", 0);
    if (number >= devices.size())
      throw Error("{}: there is no device {}; the host has {}, counted from 0", fields.where(), number, devices.size());
    if (devices[number]->peer_group >= 0)
      throw Error("{}: device {} stands in two groups; take it out of one", fields.where(), number);
    devices[number]->peer_group = group;
    devices[number]->peer_bytes_per_second = rate;
    devices[number]->peer_latency_seconds = latency;
  }
  fields.finish();
}

HostSlot read_host(TopologyFields& fields, std::size_t& devices) {
  HostSlot host;
  if (fields.has("network")) host.network = read_tree_link(fields, "network");
  host.memory_bytes_per_second = fields.number("memory_bytes_per_second", 60e9);
  if (const json* const direct = fields.find("peer_to_peer")) {
    if (!direct->is_boolean()) throw Error("{}: field 'peer_to_peer' must be true or false", fields.where());
    host.peer_to_peer = direct->get<bool>();
  }
  for (const json& item : fields.list("switches")) {
    TopologyFields inner(item, fields.where() + ", a switch");
    const std::size_t count = inner.count("count", 1);
    const SwitchSlot made = read_switch(inner);
    inner.finish();
    add_slots(host.switches, made, made.devices.size(), count, devices, inner.where());
  }
  std::int32_t group = 0;
  if (fields.has("peers"))
    for (const json& item : fields.list("peers")) read_peers(item, group++, host, fields.where());
  return host;
}

Topology read_all(const json& source, const std::string& where) {
  TopologyFields fields(source, where);
  const json* const version = fields.find("tidepool_topology");
  if (version == nullptr) throw Error("{}: it is not a Tidepool topology; give it a field 'tidepool_topology'", where);
  if (*version != kTopologyVersion)
    throw Error("{}: it has version {}, this program reads {}", where, version->dump(), kTopologyVersion);
  Topology topology;
  if (const json* const name = fields.find("name")) {
    if (!name->is_string()) throw Error("{}: field 'name' must be a text", where);
    topology.name = name->get<std::string>();
  }
  std::size_t devices = 0;
  for (const json& item : fields.list("hosts")) {
    TopologyFields inner(item, fmt::format("{}, host {}", where, topology.hosts.size()));
    const std::size_t count = inner.count("count", 1);
    std::size_t of_host = 0;
    const HostSlot made = read_host(inner, of_host);
    inner.finish();
    add_slots(topology.hosts, made, of_host, count, devices, inner.where());
  }
  fields.finish();
  require_valid(topology, where);
  return topology;
}

ordered_json write_tree_link(const TreeLink& link) {
  return {
      {"up", link.up}, {"down", link.down}, {"both_share", link.both_share}, {"latency_seconds", link.latency_seconds}};
}

ordered_json write_host(const HostSlot& host) {
  ordered_json out{{"memory_bytes_per_second", host.memory_bytes_per_second}, {"peer_to_peer", host.peer_to_peer}};
  if (host.network.up > 0) out["network"] = write_tree_link(host.network);
  std::vector<ordered_json> groups;
  std::size_t number = 0;
  for (const SwitchSlot& each : host.switches) {
    ordered_json devices = ordered_json::array();
    for (const DeviceSlot& device : each.devices) {
      devices.push_back({{"link", write_tree_link(device.link)}});
      if (device.peer_group >= 0) {
        const auto group = static_cast<std::size_t>(device.peer_group);
        while (groups.size() <= group) groups.push_back({{"devices", ordered_json::array()}});
        groups[group]["devices"].push_back(number);
        groups[group]["bytes_per_second"] = device.peer_bytes_per_second;
        groups[group]["latency_seconds"] = device.peer_latency_seconds;
      }
      ++number;
    }
    out["switches"].push_back({{"link", write_tree_link(each.link)}, {"devices", std::move(devices)}});
  }
  if (!groups.empty()) out["peers"] = groups;
  return out;
}

}  // namespace

Topology topology_from_json(const std::string& text, const std::string& source) {
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::exception&) {
    throw Error("{}: it is not JSON; check the brackets, commas and quotes", source);
  }
  return read_all(parsed, source);
}

std::string topology_to_json(const Topology& topology) {
  ordered_json hosts = ordered_json::array();
  for (const HostSlot& host : topology.hosts) hosts.push_back(write_host(host));
  return ordered_json{{"tidepool_topology", kTopologyVersion}, {"name", topology.name}, {"hosts", std::move(hosts)}}
      .dump(1);
}

Topology read_topology(const std::filesystem::path& path) {
  return topology_from_json(read_text(path, Bytes(1 << 24), "a topology"), path.string());
}

}  // namespace tide
