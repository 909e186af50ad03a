#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file_text.h"
#include "cost/profile.h"

namespace tide {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kVersion = 1;

ordered_json write_link(const LinkSpeed& link) {
  return {{"bytes_per_second", link.bytes_per_second}, {"latency_seconds", link.latency_seconds}};
}

double number(const json& value, double low) {
  const double result = value.get<double>();
  if (!(std::isfinite(result) && result >= low)) throw Error("{} is not a time or a speed", value.dump());
  return result;
}

LinkSpeed read_link(const json& source) {
  LinkSpeed link{number(source.at("bytes_per_second"), 0), number(source.at("latency_seconds"), 0)};
  if (!(link.bytes_per_second > 0)) throw Error("a link of 0 bytes per second never ends a copy");
  return link;
}

}  // namespace

std::string profiles_to_json(std::span<const Profile> profiles) {
  ordered_json list = ordered_json::array();
  for (const Profile& profile : profiles) {
    ordered_json tasks = ordered_json::object();
    for (const auto& [signature, seconds] : profile.task_seconds) tasks[signature] = seconds;
    list.push_back({{"machine", profile.machine},
                    {"backend", profile.backend},
                    {"out", write_link(profile.out)},
                    {"in", write_link(profile.in)},
                    {"task_seconds", std::move(tasks)}});
  }
  return ordered_json{{"tidepool_profile", kVersion}, {"profiles", std::move(list)}}.dump(1);
}

std::vector<Profile> profiles_from_json(const std::string& text) {
  try {
    const json source = json::parse(text);
    if (!source.is_object() || !source.contains("tidepool_profile")) throw Error("it is not a Tidepool profile");
    if (source.at("tidepool_profile") != kVersion)
      throw Error("it has version {}, this program reads {}", source.at("tidepool_profile").dump(), kVersion);
    std::vector<Profile> profiles;
    for (const json& item : source.at("profiles")) {
      Profile profile;
      profile.machine = item.at("machine").get<std::string>();
      profile.backend = item.at("backend").get<std::string>();
      profile.out = read_link(item.at("out"));
      profile.in = read_link(item.at("in"));
      for (const auto& [signature, seconds] : item.at("task_seconds").items())
        profile.task_seconds.emplace(signature, number(seconds, 0));
      profiles.push_back(std::move(profile));
    }
    if (profiles.empty()) throw Error("it has no times in it");
    return profiles;
  } catch (const json::exception& error) {
    throw Error("the profile is damaged: {}", error.what());
  }
}

std::vector<Profile> read_profiles(const std::filesystem::path& path) {
  const std::string text = read_text(path, Bytes(1LL << 30), "a profile");
  try {
    return profiles_from_json(text);
  } catch (const Error& problem) {
    throw Error("{}: {}", path.string(), problem.what());
  }
}

void save_profile(const Profile& profile, const std::filesystem::path& path) {
  std::vector<Profile> profiles;
  if (std::filesystem::exists(path)) profiles = read_profiles(path);
  Profile* same = nullptr;
  for (Profile& other : profiles)
    if (other.machine == profile.machine && other.backend == profile.backend) same = &other;
  if (same == nullptr) {
    profiles.push_back(profile);
  } else {
    same->out = profile.out;
    same->in = profile.in;
    for (const auto& [signature, seconds] : profile.task_seconds) same->task_seconds[signature] = seconds;
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << profiles_to_json(profiles) << '\n';
  file.close();
  if (!file) throw Error("{} could not be written; check the folder and the free space", path.string());
}

}  // namespace tide
