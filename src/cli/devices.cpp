// tide devices: what plans can be made for.
#include "cost/devices.h"

#include <nlohmann/json.hpp>

#include "base/size_text.h"
#include "cli/command.h"
#include "report/table.h"

namespace tide {
namespace {

std::string tera(double flops) { return flops > 0 ? fmt::format("{:.4g}", flops / 1e12) : "-"; }

void print_table() {
  Table table({{"device"},
               {"memory", Align::right},
               {"fp32", Align::right},
               {"tf32", Align::right},
               {"bf16", Align::right},
               {"GB/s", Align::right},
               {"link", Align::right},
               {"both", Align::right},
               {"reached", Align::right},
               {"GB/s", Align::right},
               {"what it is"}});
  for (const DeviceSheet& sheet : device_sheets()) {
    const Device rates = sheet.rates();
    table.add({std::string(sheet.name), sheet.memory().is_zero() ? "-" : format_size(sheet.memory()),
               tera(sheet.fp32_flops), tera(sheet.tf32_flops), tera(sheet.bf16_flops),
               fmt::format("{:.4g}", sheet.memory_bytes_per_second / 1e9),
               fmt::format("{:.3g}", sheet.link_alone / 1e9), fmt::format("{:.3g}", sheet.link_both / 1e9),
               fmt::format("{:.3g}", rates.flops_per_second / 1e12),
               fmt::format("{:.0f}", rates.memory_bytes_per_second / 1e9), std::string(sheet.description)});
  }
  fmt::print("{}\n", table.text());
  fmt::print(
      "fp32, tf32, bf16: peaks in TFLOP/s; GB/s: of its memory; reached: what good kernels get of these two.\n"
      "link: GB/s to pinned host memory alone, and each way with both busy (which plans use; --link overrides).\n"
      "Use one with tide compare, plan or fit: --device k40c --memory device.\n");
}

void print_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const DeviceSheet& sheet : device_sheets()) {
    const Device rates = sheet.rates();
    list.push_back({{"name", sheet.name},
                    {"description", sheet.description},
                    {"memory_bytes", sheet.memory_bytes},
                    {"fp32_flops_per_second", sheet.fp32_flops},
                    {"tf32_flops_per_second", sheet.tf32_flops},
                    {"bf16_flops_per_second", sheet.bf16_flops},
                    {"memory_bytes_per_second", sheet.memory_bytes_per_second},
                    {"link_bytes_per_second", sheet.link_alone},
                    {"link_both_bytes_per_second", sheet.link_both},
                    {"pageable_link_bytes_per_second", sheet.pageable_link()},
                    {"launch_seconds", sheet.launch_seconds},
                    {"reached_flops_per_second", rates.flops_per_second},
                    {"reached_memory_bytes_per_second", rates.memory_bytes_per_second}});
  }
  fmt::print("{}\n", nlohmann::ordered_json{{"devices", list}}.dump(2));
}

}  // namespace

Command devices_command(CLI::App& root) {
  auto json = std::make_shared<bool>(false);
  CLI::App* app = root.add_subcommand("devices", "The devices that plans can be made for");
  app->add_flag("--json", *json, "Print one JSON object");
  return {app, [json] {
            *json ? print_json() : print_table();
            return kDone;
          }};
}

}  // namespace tide
