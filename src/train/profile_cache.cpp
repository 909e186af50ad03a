#include "train/profile_cache.h"

#include <cstdlib>

#include "cost/profile.h"
#include "executor/measure.h"

namespace tide {
namespace {

std::uint64_t hash_of(std::string_view text) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::vector<Profile> read_cache(const std::filesystem::path& cache) {
  std::error_code error;
  if (cache.empty() || !std::filesystem::exists(cache, error)) return {};
  try {
    return read_profiles(cache);
  } catch (const Error&) {
    return {};  // measured anew and replaced
  }
}

}  // namespace

std::filesystem::path profile_cache_path(const Backend& backend) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache != '\0')
    folder = cache;
  else if (home != nullptr && *home != '\0')
    folder = std::filesystem::path(home) / ".cache";
  else
    return {};
  return folder / "tidepool" / fmt::format("profile-{:016x}.json", hash_of(machine_name() + '\n' + backend.description()));
}

std::shared_ptr<const CostModel> measured_cost(Backend& backend, std::span<const Step> steps,
                                               const std::filesystem::path& cache, double link_bytes_per_second) {
  Profile profile{machine_name(), backend.description(), {}, {}, {}};
  for (const Profile& known : read_cache(cache))
    if (known.machine == profile.machine && known.backend == profile.backend) profile = known;
  const std::size_t before = profile.task_seconds.size();
  MeasureOptions options;
  for (const Step& step : steps) {
    options.known = profile;
    profile = measure_profile(step, backend, options);
  }
  if (profile.task_seconds.size() != before && !cache.empty()) {
    std::error_code error;
    std::filesystem::create_directories(cache.parent_path(), error);
    try {
      if (!error) save_profile(profile, cache);
    } catch (const Error&) {
      std::filesystem::remove(cache, error);  // damaged, or no room: the next run measures again
    }
  }
  return std::make_shared<ProfileModel>(std::vector{std::move(profile)}, link_bytes_per_second);
}

}  // namespace tide
