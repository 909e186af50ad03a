#include <cstdio>
#include <iostream>

#include "base/error.h"
#include "cli/command.h"

namespace {

// An unset variable of a shell is no value.
void refuse_empty_values(CLI::App& app) {
  const CLI::Validator is_given(
      [](const std::string& text) {
        return text.empty() ? std::string("the value is empty; give one, or leave the option out") : std::string();
      },
      "");
  for (CLI::Option* const option : app.get_options())
    if (option->get_items_expected_max() > 0) option->check(is_given);
}

int run(int argc, char** argv) {
  CLI::App root{"Tidepool trains a neural network inside whatever device memory it is given.", "tide"};
  root.require_subcommand(1);
  root.set_version_flag("--version", "tide " TIDE_VERSION);
  root.set_help_flag("-h,--help", "Print this help and exit");
  root.footer(
      "MODEL is a zoo name (tide models), a network file (net.json) or an ONNX file (net.onnx). Sizes are 512MiB, "
      "12GiB, 1.5GB or plain bytes.\n"
      "Exit codes: 0 done, 1 error, 2 the budget is too small, 130 interrupted.");
  const std::vector<tide::Command> commands{
      tide::train_command(root),     tide::eval_command(root),    tide::predict_command(root),
      tide::plan_command(root),      tide::compare_command(root), tide::fit_command(root),
      tide::reproduce_command(root), tide::profile_command(root), tide::summary_command(root),
      tide::models_command(root),    tide::devices_command(root), tide::doctor_command(root),
      tide::export_command(root)};
  for (const tide::Command& command : commands) refuse_empty_values(*command.app);
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return root.exit(error);  // help and version
    std::string text = error.what();
    for (char& c : text)
      if (c == '\n') c = ' ';
    throw tide::Error("{}; see tide --help", text);
  }
  for (const tide::Command& command : commands)
    if (command.app->parsed()) return command.run();
  return tide::kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("tide: out of host memory; use a smaller --batch or --memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tide: %s\n", error.what());
  }
  return tide::kFailed;
}
