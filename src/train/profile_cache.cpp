#include "train/profile_cache.h"

#include <cstdlib>

#include "base/hash.h"
#include "executor/measure.h"

namespace tide {
namespace {

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
  return folder / "tidepool" /
         fmt::format("profile-{:016x}.json", fnv_of(machine_name() + '\n' + backend.description()));
}

MeasuredCost::MeasuredCost(Backend& backend, std::filesystem::path cache, double link_bytes_per_second)
    : backend_(backend), cache_(std::move(cache)), link_bytes_per_second_(link_bytes_per_second) {
  profile_.machine = machine_name();
  profile_.backend = backend.description();
  for (const Profile& known : read_cache(cache_))
    if (known.machine == profile_.machine && known.backend == profile_.backend) profile_ = known;
  model_ = std::make_unique<ProfileModel>(std::vector{profile_}, link_bytes_per_second_);
}

void MeasuredCost::cover(const Step& step) {
  const std::size_t before = profile_.task_seconds.size();
  MeasureOptions options;
  options.known = profile_;
  profile_ = measure_profile(step, backend_, options);
  if (profile_.task_seconds.size() != before) save();
  model_ = std::make_unique<ProfileModel>(std::vector{profile_}, link_bytes_per_second_);
}

void MeasuredCost::save() const {
  if (cache_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(cache_.parent_path(), error);
  try {
    if (!error) save_profile(profile_, cache_);
  } catch (const Error&) {
    std::filesystem::remove(cache_, error);  // damaged, or no room: the next run measures again
  }
}

}  // namespace tide
