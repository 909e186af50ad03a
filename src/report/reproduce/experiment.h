// A paper's tables and figures, computed again. Each experiment is a function that plans
// what the paper ran and puts the paper's values beside ours; none of ours is written down.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tide::reproduce {

class Workbench;

// How a value of ours stands to the paper's.
enum class Standing : std::uint8_t {
  exact,        // the same in every digit that the paper prints
  modelled,     // from a cost model or a count with stated costs: to be compared as a trend
  not_matched,  // by the paper's own rules another value comes out; a note says what is known
  ours_only,    // the paper draws it and prints no number
};
[[nodiscard]] std::string_view standing_name(Standing standing);

struct Comparison {
  std::string what;
  std::string unit;
  std::string paper;                  // as printed; empty where it is not
  std::optional<double> paper_value;  // of which the ratio is taken
  double ours = 0;
  int decimals = 0;
  Standing standing = Standing::modelled;
  int note = 0;  // position in Report::notes, from 1; 0: none
};

// The data of a figure, one file.
struct Series {
  std::string name;  // "figure10_steps"
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  bool printed = false;  // short enough to show
};

struct Report {
  std::string setting;  // network, batch, rules, device
  std::vector<Comparison> values;
  std::vector<Series> series;
  std::vector<std::string> notes;

  // A value that the paper prints with `decimals` digits and that counting should give:
  // exact, or not matched with the note.
  void counted(std::string what, std::string unit, double paper, double ours, int decimals, int note = 0);
  void modelled(std::string what, std::string unit, double paper, double ours, int decimals, int note = 0);
  // The paper gives a bound or a remark: "over 50".
  void remarked(std::string what, std::string unit, std::string paper, double ours, int decimals, int note = 0);
  void only_ours(std::string what, std::string unit, double ours, int decimals, int note = 0);
};

struct Experiment {
  std::string_view id;  // "table1"
  std::string_view title;
  Report (*run)(Workbench& bench);
};

// Wang et al., SuperNeurons (PPoPP 2018), in the paper's order.
[[nodiscard]] std::span<const Experiment> superneurons_experiments();
// Chen et al., Training Deep Nets with Sublinear Memory Cost (2016).
[[nodiscard]] std::span<const Experiment> sublinear_experiments();
// Chen et al., moDNN: Memory Optimal DNN Training on GPUs (DATE 2018).
[[nodiscard]] std::span<const Experiment> modnn_experiments();
// Kim et al., Efficient Multi-GPU Memory Management for Deep Learning Acceleration (2018).
[[nodiscard]] std::span<const Experiment> multi_gpu_experiments();

}  // namespace tide::reproduce
