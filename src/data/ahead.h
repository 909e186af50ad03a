// Reads ahead: threads of its own read what is expected next, while the device works on what was read before.
#pragma once

#include "data/dataset.h"

namespace tide {

struct AheadOptions {
  int threads = 0;             // 0: as many as there are cores
  std::int64_t samples = 256;  // at most so many are read and not taken yet
};

// The same samples as `whole`, whatever the number of threads. An Error of a sample is thrown where it is read.
[[nodiscard]] DatasetPtr read_ahead(DatasetPtr whole, const AheadOptions& options);

}  // namespace tide
