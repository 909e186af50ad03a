// The experiments of the SuperNeurons paper, by the file that has them.
#pragma once

#include <cstdint>

#include "report/reproduce/experiment.h"

namespace tide::reproduce::superneurons {

inline constexpr std::int64_t kDeviceMemory = 12LL << 30;  // of its devices, in bytes

Report table1(Workbench& bench);  // recomputation.cpp
Report figure10(Workbench& bench);
Report figure2(Workbench& bench);  // layers.cpp
Report figure8(Workbench& bench);
Report table2(Workbench& bench);  // pool.cpp
Report table3(Workbench& bench);  // cache.cpp
Report figure11(Workbench& bench);
Report figure12(Workbench& bench);  // workspaces.cpp
Report table4(Workbench& bench);    // limits.cpp
Report table5(Workbench& bench);
Report figure13(Workbench& bench);
Report figure14(Workbench& bench);  // speed.cpp

}  // namespace tide::reproduce::superneurons
