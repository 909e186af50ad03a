// tide doctor: what this machine and this build can do.
#include <fstream>
#include <thread>

#include "backend/backend.h"
#include "base/size_text.h"
#include "cli/command.h"
#include "cluster/link_groups.h"
#include "executor/executor.h"
#include "report/table.h"

namespace tide {
namespace {

std::string field_of(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) {
      const auto at = line.find_first_not_of(" \t:", key.size());
      return at == std::string::npos ? "" : line.substr(at);
    }
  return "unknown";
}

// What a device shares its link to host memory with.
std::string link_text(const std::string& bus_id) {
  try {
    const std::string key = find_link_key(bus_id);
    return key == bus_id ? fmt::format("{}, at the host itself", bus_id) : fmt::format("{}, behind {}", bus_id, key);
  } catch (const Error& error) {
    return fmt::format("{}; {}", bus_id, error.what());
  }
}

std::string memory_text(std::string_view key) {
  const std::string field = field_of("/proc/meminfo", key);
  if (field == "unknown") return field;
  return format_size(Bytes(checked_multiply(std::atoll(field.c_str()), 1024)));
}

}  // namespace

Command doctor_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("doctor", "What this machine and this build can do");
  return {app, [] {
            Table table({{"what"}, {"found"}});
            table.add({"tide", fmt::format("{} ({} build, {})", TIDE_VERSION, TIDE_BUILD, __VERSION__)});
            table.add({"processor", field_of("/proc/cpuinfo", "model name")});
            table.add({"cores", fmt::format("{}", std::thread::hardware_concurrency())});
            table.add({"memory", fmt::format("{}, free {}", memory_text("MemTotal"), memory_text("MemAvailable"))});
            table.add({"arena guard", ExecutorOptions{}.guard ? "on (debug build)" : "off (release build)"});
            for (const char* name : {"cpu", "cuda", "reference", "null"}) {
              std::string found;
              std::optional<std::string> bus_id;
              try {
                const std::unique_ptr<Backend> backend = make_backend(name);
                found = backend->description();
                bus_id = backend->pci_bus_id();
              } catch (const Error& error) {
                found = fmt::format("no: {}", error.what());
              }
              table.add({fmt::format("backend {}", name), found});
              if (bus_id) table.add({"its link", link_text(*bus_id)});
            }
            fmt::print("{}", table.text());
            return kDone;
          }};
}

}  // namespace tide
