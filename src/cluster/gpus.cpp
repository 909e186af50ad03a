#include "cluster/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace tide {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> gpus;
  std::istringstream text(list);
  for (std::string gpu; std::getline(text, gpu, ',');) gpus.push_back(gpu);
  return gpus;
}

}  // namespace

std::string visible_gpus() {
  if (const char* const given = std::getenv(kVisibleGpus)) return given;
  std::vector<std::size_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/driver/nvidia/gpus", error), end; !error && it != end;
       it.increment(error))
    found.push_back(found.size());
  return fmt::format("{}", fmt::join(found, ","));
}

std::string own_gpu_first(std::span<const std::string> lists, int own) {
  const std::string& list = lists[static_cast<std::size_t>(own)];
  std::vector<std::string> gpus = split(list);
  if (gpus.empty()) return "";
  const auto turn = static_cast<std::size_t>(std::count(lists.begin(), lists.begin() + own, list));
  std::rotate(gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(turn % gpus.size()), gpus.end());
  return fmt::format("{}", fmt::join(gpus, ","));
}

std::vector<std::string> of_this_host(const Communicator& communicator, std::span<const std::string> by_rank) {
  std::vector<std::string> here;
  for (int rank = 0; rank < communicator.size(); ++rank)
    if (communicator.host(rank) == communicator.host(communicator.rank()))
      here.push_back(by_rank[static_cast<std::size_t>(rank)]);
  return here;
}

}  // namespace tide
