// SuperNeurons' strategies for bringing back what was dropped (its section 3.4).
#pragma once

#include <cstdint>
#include <string_view>

namespace tide {

enum class Recompute : std::uint8_t {
  none,        // nothing is dropped
  speed,       // a segment is run again once and kept until its last use
  memory,      // it is run again for each backward task, which keeps only what it reads
  cost_aware,  // speed where that does not raise the peak of `memory`, memory elsewhere
};
[[nodiscard]] std::string_view recompute_name(Recompute recompute);

}  // namespace tide
