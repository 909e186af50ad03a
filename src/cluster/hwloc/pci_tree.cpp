// The machine's PCIe tree, by hwloc.
#include <hwloc.h>

#include <memory>

#include "base/error.h"
#include "cluster/link_groups.h"

namespace tide {
namespace {

struct DestroyTree {
  void operator()(hwloc_topology* tree) const { hwloc_topology_destroy(tree); }
};
using TreePtr = std::unique_ptr<hwloc_topology, DestroyTree>;

TreePtr load_tree(const std::string& machine) {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) throw Error("hwloc cannot be used; say with --topology who shares a switch");
  TreePtr tree(made);
  if (!machine.empty() && hwloc_topology_set_xml(tree.get(), machine.c_str()) != 0)
    throw Error("{}: hwloc cannot read it; give a file that 'lstopo FILE.xml' wrote", machine);
  hwloc_topology_set_io_types_filter(tree.get(), HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(tree.get()) != 0)
    throw Error("hwloc cannot tell how this machine is built; say with --topology who shares a switch");
  return tree;
}

}  // namespace

std::optional<std::vector<PciBridge>> pci_bridges(const std::string& bus_id, const std::string& machine) {
  const TreePtr tree = load_tree(machine);
  const hwloc_obj* const device = hwloc_get_pcidev_by_busidstring(tree.get(), bus_id.c_str());
  if (device == nullptr) return std::nullopt;
  std::vector<PciBridge> bridges;
  for (const hwloc_obj* object = device->parent; object != nullptr; object = object->parent) {
    if (object->type != HWLOC_OBJ_BRIDGE) continue;
    const auto& bridge = object->attr->bridge;
    if (bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
      bridges.push_back({.bus_id = "", .is_host = true});
    } else {
      const auto& at = bridge.upstream.pci;
      bridges.push_back({.bus_id = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", static_cast<unsigned>(at.domain),
                                               static_cast<unsigned>(at.bus), static_cast<unsigned>(at.dev),
                                               static_cast<unsigned>(at.func)),
                         .is_host = false});
    }
  }
  return bridges;
}

}  // namespace tide
