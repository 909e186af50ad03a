#include "base/error.h"
#include "cluster/link_groups.h"

namespace tide {

std::optional<std::vector<PciBridge>> pci_bridges(const std::string& /*bus_id*/, const std::string& /*machine*/) {
  throw Error(
      "this build cannot tell which devices share a PCIe switch: give --topology, or install libhwloc-dev and "
      "configure with -DTIDE_HWLOC=ON");
}

}  // namespace tide
