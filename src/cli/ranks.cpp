#include "cli/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/size_text.h"
#include "cli/link_rate.h"
#include "cluster/gpus.h"
#include "cluster/launch.h"
#include "cluster/launcher.h"
#include "train/watched.h"

namespace tide {
namespace {

constexpr std::int64_t kMostRanks = 256;  // that a launcher starts on one machine in a few seconds

constexpr double kLeastHang = 1;  // second; ranks hear of each other ten times as often

Bytes bucket_of(const std::string& text) {
  const Bytes bucket = parse_size(text);
  if (bucket.count() < 1) throw Error("--bucket {} is not possible; a bucket has at least 1 byte", text);
  return bucket;
}

DataType wire_type(const std::string& name) {
  if (name == "fp32") return DataType::f32;
  if (name == "bf16") return DataType::bf16;
  throw Error("unknown --reduce-type '{}'; it is fp32 or bf16", name);
}

SumRoad road_of(const std::string& name) {
  if (name.empty()) return SumRoad::automatic;
  if (name == "nccl") return SumRoad::nccl;
  if (name == "cpu" || name == "mpi") return SumRoad::host;
  throw Error("unknown --reduce '{}'; it is nccl, mpi or cpu", name);
}

// Before anybody is launched, what can be seen from the words alone.
void require_sense(const RankArguments& arguments) {
  if (arguments.devices && (*arguments.devices < 1 || *arguments.devices > kMostRanks))
    throw Error("--devices {} is not possible; give 1 to {}", *arguments.devices, kMostRanks);
  if (arguments.leaves < 0) throw Error("--fixed-order needs at least one leaf; give a power of two, such as 8");
  if (!(arguments.hang_timeout >= kLeastHang))
    throw Error("--hang-timeout {} is too short to tell; give at least {}", arguments.hang_timeout, kLeastHang);
  if (!arguments.bucket.empty()) static_cast<void>(bucket_of(arguments.bucket));
  if (!arguments.least_to_shard.empty()) static_cast<void>(parse_size(arguments.least_to_shard));
  for (const auto& [option, rate] :
       {std::pair{"--lend-rate", arguments.lend_rate}, {"--peer-rate", arguments.peer_rate}})
    if (!rate.empty()) static_cast<void>(parse_link_rate(rate, option));
  static_cast<void>(wire_type(arguments.reduce_type));
  static_cast<void>(road_of(arguments.reduce));
  static_cast<void>(shard_from_name(arguments.shard));
  static_cast<void>(stagger_from_name(arguments.stagger));
  if (!arguments.topology.empty()) static_cast<void>(find_topology(arguments.topology));
  if (!arguments.topology.empty() && stagger_from_name(arguments.stagger) == Stagger::none)
    throw Error("--topology tells --stagger how devices are connected; give that one, too");
}

// In the environment of ranks whose words reach a terminal in the end.
constexpr const char* kTerminal = "TIDE_TERMINAL";

// Of this process, but for --devices.
std::vector<std::string> arguments_to_hand_on() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) {
    if (argument.starts_with("--devices=")) continue;
    if (argument == "--devices") {
      std::getline(file, argument, '\0');
      continue;
    }
    arguments.push_back(argument);
  }
  return arguments;
}

[[noreturn]] void become_launcher(int ranks) {
  std::vector<std::string> own = arguments_to_hand_on();
  std::vector<char*> pointers;
  for (std::string& argument : own) pointers.push_back(argument.data());
  const std::vector<std::string> command = launch_command(ranks, pointers);
  if (isatty(STDOUT_FILENO) == 1) setenv(kTerminal, "1", 1);
  std::fflush(nullptr);
  std::exit(run_launcher(command, program_path()));
}

}  // namespace

void RankArguments::add_to(CLI::App& app) {
  app.add_option("--devices", devices,
                 "Train on so many devices of this machine, a process for each; --batch is for each of them");
  app.add_option("--bucket", bucket, "Gradients are summed over the ranks in pieces of about this size (25MiB)");
  app.add_option("--reduce", reduce, "Who sums gradients: nccl (GPUs), or cpu or mpi (the processor, by MPI)");
  app.add_flag("--share-devices", share_devices,
               "Several ranks may use one GPU; their gradients are summed by the cpu");
  app.add_option("--reduce-type", reduce_type, "How gradients go to other ranks: fp32, or bf16 for half the traffic")
      ->capture_default_str();
  app.add_flag("--sync-batch-norm", sync_batch_norm, "Batch norm has the statistics of all ranks' samples");
  app.add_flag(
      "--fixed-order{8}", leaves,
      "The same bits on any number of ranks that divides so many leaves, --fixed-order=8: all sums over samples "
      "follow one tree, and each rank works on one thread");
  app.add_option("--shard", shard,
                 "What each rank keeps only a part of: none, optimizer (its state), or parameters (and its state)")
      ->capture_default_str();
  app.add_option("--least-to-shard", least_to_shard, "Smaller parameters stay whole on each rank all the same (64KiB)");
  app.add_option("--lend", lend,
                 "Host memory that a rank lends to the ranks that lend none: 8GiB, or with ranks, 0:8GiB,3:1GiB");
  app.add_option("--lend-rate", lend_rate,
                 "How fast memory of other ranks is taken for, such as 3GB/s (5GB/s; 1GB/s from other machines)");
  app.add_option("--lend-device", lend_device,
                 "Device memory that a rank lends to others on its machine, in the same words");
  app.add_option("--peer-rate", peer_rate, "How fast device memory of other ranks is taken for (as the link)");
  app.add_option("--hang-timeout", hang_timeout,
                 "Seconds without progress after which a rank counts as hanging, or five times the predicted time")
      ->capture_default_str();
  app.add_option("--stagger", stagger,
                 "Which ranks swap what, of those whose devices share a link: none, each as if it were alone; paper, "
                 "layers in turn (vdnn-conv, vdnn-all); auto, the fastest of many ways by the simulator")
      ->capture_default_str();
  app.add_option("--topology", topology,
                 "How the ranks' devices are connected, for --stagger: a file or a name (docs/cluster-model.md); by "
                 "default as the machines are built");
}

Ranks::Ranks(const RankArguments& arguments, std::function<void()> on_stop) : arguments_(arguments) {
  require_sense(arguments);
  const Stagger stagger = stagger_from_name(arguments.stagger);
  const std::optional<Launched> launched = find_launcher();
  if (arguments.devices.value_or(1) > 1 && !launched) become_launcher(static_cast<int>(*arguments.devices));
  communicator_ = join_ranks();
  if (arguments.devices && *arguments.devices != count())
    throw Error("--devices {} under a launcher that started {}; leave --devices out, it starts processes itself",
                *arguments.devices, count());
  if (stagger != Stagger::none && count() == 1)
    throw Error("--stagger {} is for several ranks; give --devices too", arguments.stagger);
  if (!is_first()) silent_.reset(std::fopen("/dev/null", "w"));
  if (count() == 1) return;
  WatchOptions options;
  options.hang = arguments.hang_timeout;
  options.on_stop = std::move(on_stop);
  watch_ = std::make_unique<Watch>(*communicator_, std::move(options));
  watched_ = make_watched(*communicator_, *watch_);
}

bool Ranks::may_redraw() const { return count() == 1 || std::getenv(kTerminal) != nullptr; }

int Ranks::threads(int asked) const {
  const int share = count() == 1 ? asked : threads_for(*watched_);  // all ranks take part, whatever they were told
  if (arguments_.leaves > 0) return 1;                              // libraries sum in other orders on more
  return asked > 0 ? asked : share;
}

void Ranks::take_gpu(bool is_needed) const {
  if (count() == 1) return;
  const std::vector<std::string> lists = watched_->gather(is_needed ? visible_gpus() : "");
  if (!is_needed) return;
  const std::string own = own_gpu_first(of_this_host(*communicator_, lists), local_rank(*communicator_).index);
  if (!own.empty()) ::setenv(kVisibleGpus, own.c_str(), 1);
}

void Ranks::require_own_gpu(const std::optional<std::string>& bus_id) const {
  if (count() == 1) return;
  const std::vector<std::string> ids = of_this_host(*communicator_, watched_->gather(bus_id.value_or("")));
  if (arguments_.share_devices || !bus_id) return;
  const auto sharing = std::count(ids.begin(), ids.end(), *bus_id);
  if (sharing > 1)
    throw Error("{} of the {} ranks on {} have the GPU {}; start fewer, or let them share one with --share-devices",
                sharing, ids.size(), communicator_->host(communicator_->rank()), *bus_id);
}

Bytes Ranks::lent(std::string_view option, const std::string& words) const {
  Bytes sum;
  std::set<int> named;
  std::istringstream list(words);
  for (std::string text; std::getline(list, text, ',');) {
    const std::size_t colon = text.find(':');
    if (colon != std::string::npos) {
      int rank = -1;
      const auto [end, error] = std::from_chars(text.data(), text.data() + colon, rank);
      if (error != std::errc() || end != text.data() + colon || rank < 0 || rank >= count())
        throw Error("{} '{}' names no rank; there are 0 to {}", option, text, count() - 1);
      if (!named.insert(rank).second) throw Error("{} '{}' names rank {} twice", option, words, rank);
      if (rank != communicator_->rank()) continue;
      text.erase(0, colon + 1);
    }
    sum += parse_size(text);
  }
  return sum;
}

RankSettings Ranks::settings() const {
  RankSettings settings;
  settings.lend = lent("--lend", arguments_.lend);
  settings.lend_device = lent("--lend-device", arguments_.lend_device);
  if (!arguments_.peer_rate.empty())
    settings.peer_bytes_per_second = parse_link_rate(arguments_.peer_rate, "--peer-rate");
  if (!arguments_.lend_rate.empty())
    settings.lent_bytes_per_second = parse_link_rate(arguments_.lend_rate, "--lend-rate");
  settings.leaves = arguments_.leaves;
  settings.sync_batch_norm = arguments_.sync_batch_norm || arguments_.leaves > 0;
  if (count() == 1) return settings;
  settings.shard = shard_from_name(arguments_.shard);
  if (!arguments_.least_to_shard.empty()) settings.least_to_shard = parse_size(arguments_.least_to_shard);
  settings.communicator = watched_.get();
  settings.sums_over = communicator_.get();
  if (!arguments_.bucket.empty()) settings.bucket = bucket_of(arguments_.bucket);
  settings.road = arguments_.reduce.empty() && arguments_.share_devices ? SumRoad::host : road_of(arguments_.reduce);
  settings.wire = wire_type(arguments_.reduce_type);
  settings.stagger = stagger_from_name(arguments_.stagger);
  if (!arguments_.topology.empty())
    settings.topology = first_devices(find_topology(arguments_.topology), static_cast<std::size_t>(count()));
  return settings;
}

void Ranks::require_same(const std::vector<Fact>& facts) {
  if (count() == 1) return;
  nlohmann::json own = nlohmann::json::array();
  for (const auto& [what, value] : facts) own.push_back(value);
  const std::vector<std::string> all = watched_->gather(own.dump());
  const auto first = nlohmann::json::parse(all[0]);
  for (int rank = 1; rank < count(); ++rank) {
    const auto other = nlohmann::json::parse(all[static_cast<std::size_t>(rank)]);
    for (std::size_t i = 0; i < facts.size(); ++i)
      if (first.at(i) != other.at(i)) {
        // All find the same, and the first one tells.
        if (!is_first()) communicator_->barrier();
        throw Error("rank {} on {} has {} {}, rank 0 on {} has {}; start all ranks with the same words and program",
                    rank, communicator_->host(rank), facts[i].what, other.at(i).get<std::string>(),
                    communicator_->host(0), first.at(i).get<std::string>());
      }
  }
}

double Ranks::largest(double own) {
  if (count() == 1) return own;
  double most = own;
  for (const std::string& text : watched_->gather(fmt::format("{}", own))) most = std::max(most, std::stod(text));
  return most;
}

Bytes Ranks::sum(Bytes own) {
  if (count() == 1) return own;
  Bytes all;
  for (const std::string& text : watched_->gather(std::to_string(own.count()))) all += Bytes(std::stoll(text));
  return all;
}

void Ranks::fail(const std::string& reason, int exit_code) {
  if (watch_) watch_->fail(reason, exit_code);
}

void Ranks::finish() {
  if (count() == 1) return;
  watched_->barrier();
  watch_->finish();
  watched_.reset();
  leave_ranks(std::move(communicator_));
}

}  // namespace tide
