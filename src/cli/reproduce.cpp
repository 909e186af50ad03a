// tide reproduce: a paper's tables and figures, the paper's values beside ours.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/stopwatch.h"
#include "cli/command.h"
#include "report/reproduce/experiment.h"
#include "report/reproduce/workbench.h"
#include "report/table.h"

namespace tide {
namespace {

using nlohmann::ordered_json;
using namespace reproduce;

struct ReproduceArguments {
  std::string paper;
  std::vector<std::string> only;
  std::string output;
  bool json = false;
};

struct Paper {
  std::string_view name, title;
  std::span<const Experiment> (*experiments)();
};
constexpr Paper kPapers[] = {
    {"superneurons",
     "Wang et al., SuperNeurons: Dynamic GPU Memory Management for Training Deep Neural Networks (PPoPP 2018)",
     superneurons_experiments},
    {"sublinear", "Chen et al., Training Deep Nets with Sublinear Memory Cost (2016)", sublinear_experiments},
    {"modnn", "Chen et al., moDNN: Memory Optimal DNN Training on GPUs (DATE 2018)", modnn_experiments},
    {"multi-gpu", "Kim et al., Efficient Multi-GPU Memory Management for Deep Learning Acceleration (2018)",
     multi_gpu_experiments},
};

const Paper& find_paper(const std::string& name) {
  std::string known;
  for (const Paper& paper : kPapers) {
    if (paper.name == name) return paper;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", paper.name);
  }
  throw Error("there is no paper '{}' to reproduce; there are {}", name, known);
}

std::vector<Experiment> chosen(const ReproduceArguments& arguments) {
  const auto all = find_paper(arguments.paper).experiments();
  std::string known;
  for (const Experiment& experiment : all) known += fmt::format("{}{}", known.empty() ? "" : ", ", experiment.id);
  std::vector<Experiment> list;
  for (const std::string& id : arguments.only)
    if (std::none_of(all.begin(), all.end(), [&](const Experiment& experiment) { return experiment.id == id; }))
      throw Error("--only '{}' is not in the paper; there are {}", id, known);
  for (const Experiment& experiment : all)
    if (arguments.only.empty() ||
        std::find(arguments.only.begin(), arguments.only.end(), experiment.id) != arguments.only.end())
      list.push_back(experiment);
  return list;
}

void write_series(const Series& series, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / (series.name + ".csv");
  std::ofstream file(path);
  const auto line = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) file << (i == 0 ? "" : ",") << cells[i];
    file << "\n";
  };
  line(series.columns);
  for (const auto& row : series.rows) line(row);
  file.flush();
  if (!file) throw Error("cannot write {}; is there such a folder, and room in it?", path.string());
}

// Words of `text` in lines of at most 110 columns, the later ones indented.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (column + end - at > 110) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (at > 0) {
      result += " ";
      ++column;
    }
    result += text.substr(at, end - at);
    column += end - at;
    at = end + 1;
  }
  return result;
}

void print_series(const Series& series) {
  std::vector<Table::Column> columns;
  for (std::size_t i = 0; i < series.columns.size(); ++i)
    columns.push_back({series.columns[i], i == 0 ? Align::left : Align::right});
  Table table(std::move(columns));
  for (const auto& row : series.rows) table.add(row);
  fmt::print("\n{}", table.text());
}

void print_text(const Experiment& experiment, const Report& report, double seconds) {
  std::string id(experiment.id);
  id.insert(id.find_first_of("0123456789"), " ");
  id.front() = static_cast<char>(std::toupper(id.front()));
  fmt::print("{}. {}\n  {}\n\n", id, experiment.title, wrapped(report.setting, 2));
  Table table(
      {{"what"}, {"unit"}, {"paper", Align::right}, {"ours", Align::right}, {"ratio", Align::right}, {"standing"}});
  for (const Comparison& value : report.values) {
    const bool comparable = value.paper_value && *value.paper_value != 0;
    table.add(
        {value.what, value.unit, value.paper.empty() ? "-" : value.paper,
         fmt::format("{:.{}f}", value.ours, value.decimals),
         comparable ? fmt::format("{:.3f}", value.ours / *value.paper_value) : "-",
         fmt::format("{}{}", standing_name(value.standing), value.note > 0 ? fmt::format(" ({})", value.note) : "")});
  }
  fmt::print("{}", table.text());
  for (const Series& series : report.series)
    if (series.printed) print_series(series);
  if (!report.notes.empty()) fmt::print("\n");
  for (std::size_t i = 0; i < report.notes.size(); ++i) fmt::print("  ({}) {}\n", i + 1, wrapped(report.notes[i], 6));
  fmt::print("  computed in {:.2g} s\n\n", seconds);
}

ordered_json to_json(const Experiment& experiment, const Report& report, double seconds) {
  ordered_json out{{"id", experiment.id}, {"title", experiment.title}, {"setting", report.setting}};
  out["values"] = ordered_json::array();
  for (const Comparison& value : report.values) {
    ordered_json entry{{"what", value.what}, {"unit", value.unit}};
    entry["paper"] = value.paper_value     ? ordered_json(*value.paper_value)
                     : value.paper.empty() ? ordered_json(nullptr)
                                           : ordered_json(value.paper);
    entry["ours"] = value.ours;
    entry["standing"] = standing_name(value.standing);
    if (value.note > 0) entry["note"] = report.notes[static_cast<std::size_t>(value.note) - 1];
    out["values"].push_back(std::move(entry));
  }
  out["series"] = ordered_json::object();
  for (const Series& series : report.series)
    out["series"][series.name] = {{"columns", series.columns}, {"rows", series.rows}};
  out["seconds"] = seconds;
  return out;
}

int run(const ReproduceArguments& arguments) {
  const std::vector<Experiment> experiments = chosen(arguments);
  if (!arguments.output.empty()) {
    std::error_code error;
    std::filesystem::create_directories(arguments.output, error);
    if (error) throw Error("cannot make the folder {}: {}", arguments.output, error.message());
  }
  if (!arguments.json) fmt::print("{}\n\n", find_paper(arguments.paper).title);
  Workbench bench;
  ordered_json list = ordered_json::array();
  int counts[4] = {};
  for (const Experiment& experiment : experiments) {
    const Stopwatch watch;
    const Report report = experiment.run(bench);
    const double seconds = watch.seconds();
    for (const Comparison& value : report.values) ++counts[static_cast<int>(value.standing)];
    if (!arguments.output.empty())
      for (const Series& series : report.series) write_series(series, arguments.output);
    if (arguments.json)
      list.push_back(to_json(experiment, report, seconds));
    else
      print_text(experiment, report, seconds);
    std::fflush(stdout);
  }
  if (arguments.json) {
    fmt::print("{}\n", ordered_json{{"paper", arguments.paper}, {"experiments", list}}.dump(2));
    return kDone;
  }
  fmt::print("{} values exact, {} not matched (see the notes), {} modelled, {} that the paper does not print.\n",
             counts[0], counts[2], counts[1], counts[3]);
  if (!arguments.output.empty()) fmt::print("The figures' data are CSV files in {}.\n", arguments.output);
  return kDone;
}

}  // namespace

Command reproduce_command(CLI::App& root) {
  auto arguments = std::make_shared<ReproduceArguments>();
  CLI::App* app = root.add_subcommand("reproduce", "A paper's tables and figures, the paper's values beside ours");
  app->add_option("PAPER", arguments->paper, "superneurons, sublinear, modnn or multi-gpu")->required();
  app->add_option("--only", arguments->only, "Some of them: table1,figure10,...")->delimiter(',');
  app->add_option("--output", arguments->output, "Write the figures' data as CSV files into this folder");
  app->add_flag("--json", arguments->json, "Print one JSON object");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
