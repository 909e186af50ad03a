// Which data a command works on.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/defaults.h"
#include "data/dataset.h"
#include "network/network.h"

namespace tide {

struct DataArguments {
  std::string name;
  double validation = kValidationFraction;
  std::int64_t synthetic_size = 0;
  std::uint64_t seed = defaults().seed;
  void add_to(CLI::App& app);
  // Split into a training and a held-out part. Throws an Error where the network's input,
  // classes or labels are not the data's.
  [[nodiscard]] Split load(const Network& network, std::int64_t batch) const;
};

}  // namespace tide
