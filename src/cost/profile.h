// Measured times. A profile is what `tide profile` writes: how long each kind of task took on
// one machine with one backend, and how fast copies were. Tasks that would run the same
// kernel on the same shapes have one signature and are measured once.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cost/model.h"

namespace tide {

// Copies one way, while the other way is busy too.
struct LinkSpeed {
  double bytes_per_second = 0;
  double latency_seconds = 0;  // per copy
};

// Times hold for one machine and one backend description, which has library versions,
// instruction set and threads in it.
struct Profile {
  std::string machine;
  std::string backend;
  LinkSpeed out, in;                           // device to host and back
  std::map<std::string, double> task_seconds;  // by signature
};

// "convolution forward x=32x64x56x56 weight=64x64x3x3 >y=32x64x56x56, default". A replay has
// its forward task's signature where it has the same operands.
[[nodiscard]] std::string signature_of(const Step& step, TaskId task, std::size_t algorithm);

// Processor and cores of this machine.
[[nodiscard]] std::string machine_name();

// Answers from profiles; what they lack is asked of a roofline and counted.
class ProfileModel final : public CostModel {
 public:
  // A step is timed by the profile of its backend, of this machine where there are several.
  // Above 0, `link_bytes_per_second` bounds the speed of copies: a throttled link.
  explicit ProfileModel(std::vector<Profile> profiles, double link_bytes_per_second = 0);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] double task_seconds(const Step& step, TaskId task, std::size_t algorithm) const override;
  [[nodiscard]] double copy_seconds(Bytes bytes, Tier from, Tier to) const override;

  // How often the roofline had to answer so far.
  [[nodiscard]] std::int64_t missing() const { return missing_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] const Profile* find(const std::string& backend) const;

  std::vector<Profile> profiles_;  // never empty; the preferred ones first
  double link_bytes_per_second_;
  RooflineModel otherwise_;
  mutable std::atomic<std::int64_t> missing_{0};
};

// The file format: any number of profiles, one for each machine and backend. Reading throws
// an Error that says what is wrong.
[[nodiscard]] std::string profiles_to_json(std::span<const Profile> profiles);
[[nodiscard]] std::vector<Profile> profiles_from_json(const std::string& text);
[[nodiscard]] std::vector<Profile> read_profiles(const std::filesystem::path& path);
// Adds to what the file has: new times replace those of the same machine, backend and signature.
void save_profile(const Profile& profile, const std::filesystem::path& path);

}  // namespace tide
