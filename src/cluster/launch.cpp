#include "cluster/launch.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "cluster/mpi_ranks.h"
#include "cluster/threads.h"

namespace tide {
namespace {

std::optional<int> number_in_environment(const char* name) {
  const char* const text = std::getenv(name);
  if (!text) return std::nullopt;
  int value = 0;
  const char* const end = text + std::char_traits<char>::length(text);
  const std::from_chars_result result = std::from_chars(text, end, value);
  if (result.ec != std::errc() || result.ptr != end || value < 0)
    throw Error("the environment has {}='{}', which is no number of processes: unset it, or use a launcher", name,
                text);
  return value;
}

// The variables of a launcher; the first whose rank is there counts. A size that it does not tell may be Slurm's.
struct LauncherVariables {
  const char* launcher;
  const char* size;
  const char* rank;
};
constexpr std::array kLaunchers{LauncherVariables{"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                LauncherVariables{"mpiexec", "PMI_SIZE", "PMI_RANK"},
                                LauncherVariables{"PMIx", nullptr, "PMIX_RANK"}};

// Of the step that srun started. A batch script, too, has a rank and the job's number of tasks, but no step.
std::optional<Launched> find_srun() {
  if (!std::getenv("SLURM_STEP_ID")) return std::nullopt;
  const std::optional<int> rank = number_in_environment("SLURM_PROCID");
  std::optional<int> size = number_in_environment("SLURM_STEP_NUM_TASKS");
  if (!size) size = number_in_environment("SLURM_NTASKS");
  if (!rank || !size) return std::nullopt;
  return Launched{*size, *rank, "srun"};
}

std::string find_in_path(const std::string& name) {
  const char* const folders = std::getenv("PATH");
  std::istringstream list(folders ? folders : "");
  for (std::string folder; std::getline(list, folder, ':');) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path)) return path;
  }
  return "";
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(static_cast<int>(core));
  if (cores.empty())  // a machine of more cores than a set holds
    for (unsigned core = 0; core < std::max(1U, std::thread::hardware_concurrency()); ++core)
      cores.push_back(static_cast<int>(core));
  return cores;
}

std::string machine_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

std::optional<Launched> find_launcher() {
  const std::optional<Launched> srun = find_srun();
  for (const LauncherVariables& variables : kLaunchers) {
    const std::optional<int> rank = number_in_environment(variables.rank);
    if (!rank) continue;
    std::optional<int> size;
    if (variables.size) size = number_in_environment(variables.size);
    if (srun && (!size || *size == srun->size)) return srun;  // which speaks PMI itself
    return Launched{size.value_or(0), *rank, variables.launcher};
  }
  return srun;
}

std::unique_ptr<Communicator> join_ranks(std::size_t largest) {
  const std::optional<Launched> launched = find_launcher();
  if (!launched || launched->size == 1) return std::move(make_thread_ranks(1, {machine_name()}).front());
  std::unique_ptr<Communicator> communicator = join_mpi_ranks(largest);
  if (launched->size > 0 && communicator->size() != launched->size)
    throw Error("{} started {} processes, but MPI connects {} of them: {}", launched->launcher, launched->size,
                communicator->size(),
                launched->launcher == "srun" ? "use srun --mpi=pmix or srun --mpi=pmi2"
                                             : "use the mpirun of the MPI that this program was built with");
  return communicator;
}

void leave_ranks(std::unique_ptr<Communicator> communicator) { leave_mpi_ranks(*communicator); }

std::string program_path() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw Error("this program does not find itself in /proc/self/exe: {}", error.message());
  return path.string();
}

std::vector<std::string> launch_command(int ranks, std::span<char* const> own_arguments) {
  const bool is_open_mpi = launches_by_open_mpi();
  const std::string launcher = find_in_path("mpirun");
  if (launcher.empty())
    throw Error("there is no mpirun in PATH to start {} processes with: install openmpi-bin", ranks);
  std::vector<std::string> command{launcher, "-n", std::to_string(ranks)};
  if (is_open_mpi) {
    // A rank has threads, for which it shares the cores with the others (threads_for); and its own words where it
    // fails.
    for (const char* const option : {"--oversubscribe", "--bind-to", "none", "--quiet"}) command.emplace_back(option);
    if (geteuid() == 0) command.emplace_back("--allow-run-as-root");
  }
  command.push_back(program_path());
  for (const char* const argument : own_arguments.subspan(std::min<std::size_t>(1, own_arguments.size())))
    command.emplace_back(argument);
  return command;
}

int threads_for(const LocalRank& local) { return std::max(1, static_cast<int>(allowed_cores().size()) / local.count); }

int threads_for(Communicator& communicator) {
  std::ostringstream own;
  for (const int core : allowed_cores()) own << core << ' ';
  std::vector<std::string> all = communicator.gather(own.str());
  // A core counts as one of as many as there are ranks that may use it.
  double share = 0;
  for (const int core : allowed_cores()) {
    int users = 0;
    for (int rank = 0; rank < communicator.size(); ++rank) {
      if (communicator.host(rank) != communicator.host(communicator.rank())) continue;
      std::istringstream list(all[static_cast<std::size_t>(rank)]);
      for (int other = 0; list >> other;) users += other == core ? 1 : 0;
    }
    share += 1.0 / std::max(1, users);
  }
  return std::max(1, static_cast<int>(share + 1e-6));
}

}  // namespace tide
