// What experiments share: the paper's networks, their steps, and plans of these.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "plan/summary.h"
#include "planner/planner.h"

namespace tide::reproduce {

// The paper's name of a network and the zoo's.
struct PaperNetwork {
  std::string_view name;
  std::string_view model;
};
// AlexNet, VGG16, InceptionV4, ResNet50, 101 and 152, as in its tables.
[[nodiscard]] std::span<const PaperNetwork> paper_networks();

// One plan to make. The paper counts by its own rules, so those are the default; parameters stay on the device there.
struct Setting {
  std::string_view model;
  std::int64_t batch = 1;
  std::string_view policy = "superneurons";
  PlannerOptions options = {.parameters = Parameters::device};
  std::string_view device = "k40c";
  Rules rules = Rules::superneurons;
  bool workspaces = true;                       // false: convolutions have only what needs none
  std::optional<Bytes> largest_workspace = {};  // none: any
  Part part = Part::whole;
  RankOptions ranks = {};  // several train together
};

struct Planned {
  PlanResult result;
  PlanSummary summary;  // empty where there is no plan
  double seconds = 0;   // of a step, simulated

  [[nodiscard]] bool fits() const { return result.plan.has_value(); }
};

class Workbench {
 public:
  [[nodiscard]] NetworkPtr network(std::string_view model);
  [[nodiscard]] Step step(const Setting& setting);
  // Where its options allow other numbers than the whole batch gives, the batch may be cut.
  [[nodiscard]] Planned plan(const Setting& setting);
  // The largest batch of a setting; 0 where none fits.
  [[nodiscard]] std::int64_t largest_batch(Setting setting);

 private:
  std::map<std::string, NetworkPtr, std::less<>> networks_;  // made once
};

// The papers' MB are MiB; their GB of communication are 10^9 bytes.
[[nodiscard]] inline double mebibytes(Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 20); }
[[nodiscard]] inline double gibibytes(Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 30); }
[[nodiscard]] inline double gigabytes(Bytes bytes) { return static_cast<double>(bytes.count()) / 1e9; }

}  // namespace tide::reproduce
