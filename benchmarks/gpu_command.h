// What the benchmarks of one model on the cuda backend are asked for.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "backend/backend.h"
#include "step/build.h"
#include "zoo/zoo.h"

namespace tide {

struct GpuCommand {
  std::string model;
  std::int64_t batch = 1;
  Precision precision = Precision::tf32;
  bool fuse = true;

  explicit GpuCommand(CLI::App& app) {
    app.add_option("MODEL", model, "A network of the zoo")->required();
    app.add_option("BATCH", batch, "Samples")->required()->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
    const auto set_precision = [this](const std::string& name) {
      precision = name == "fp32" ? Precision::fp32 : name == "bf16" ? Precision::bf16 : Precision::tf32;
    };
    app.add_option_function<std::string>("--precision", set_precision)->check(CLI::IsMember({"fp32", "tf32", "bf16"}));
    app.add_flag("!--no-fuse", fuse, "Layers one by one");
  }

  [[nodiscard]] std::unique_ptr<Backend> backend() const {
    BackendOptions options;
    options.precision = precision;
    return make_backend("cuda", options);
  }

  // A training step, not annotated yet.
  [[nodiscard]] Step step() const {
    return build_step(std::make_shared<const Network>(make_model(model)),
                      {.batch = batch,
                       .rules = Rules::minimal,
                       .training = true,
                       .optimizer = {},
                       .fuse = fuse,
                       .activations = precision == Precision::bf16 ? DataType::bf16 : DataType::f32});
  }
};

// Parses, runs, and says in one line what went wrong.
template <typename Run>
int gpu_main(CLI::App& app, int count, char** arguments, const Run& run) {
  try {
    app.parse(count, arguments);
    return run();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // help
    std::fprintf(stderr, "%s: %s; see --help\n", app.get_name().c_str(), error.what());
    return 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), error.what());
    return 1;
  }
}

}  // namespace tide
