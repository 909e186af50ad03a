// Which data a command works on.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "cli/defaults.h"
#include "data/words.h"
#include "network/network.h"

namespace tide {

struct DataArguments : DataWords {
  std::string name;

  void add_to(CLI::App& app);
  // Split into a training and a held-out part. Throws an Error where the network's input,
  // classes or labels are not the data's.
  [[nodiscard]] Split load(const Network& network, std::int64_t batch) const;
  // How an image by itself is read for the network.
  [[nodiscard]] ImageOptions one_image(const Network& network) const;
  // How images were read in training, for what the command line leaves out.
  std::optional<ImageReading> reading;

 private:
  [[nodiscard]] DataRequest request(const Network& network, std::int64_t batch) const;
};

}  // namespace tide
