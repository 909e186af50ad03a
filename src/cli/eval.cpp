// tide eval: loss and accuracy of a checkpoint.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/data.h"
#include "cli/options.h"
#include "train/checkpoint.h"

namespace tide {
namespace {

struct EvalArguments {
  ModelArguments model;
  BudgetArguments budget;
  StepArguments step;
  DataArguments data;
  std::string checkpoint;
  bool json = false;
};

int run(const EvalArguments& arguments) {
  const NetworkPtr network = arguments.model.load();
  if (!network->has_loss())
    throw Error("{} has no loss layer, so there is nothing to compare with the labels", network->name);
  const Split data = arguments.data.load(*network, arguments.step.batch);
  const Dataset& held_out = data.validation ? *data.validation : *data.train;
  SessionOptions options;
  options.backend = arguments.step.backend_name();
  options.threads = arguments.step.threads;
  options.precision = arguments.step.precision_of_products();
  options.fuse = arguments.step.fuses();
  options.activations = arguments.step.activations();
  options.deterministic = arguments.step.deterministic;
  options.policy = "auto";
  options.planner.memory[Tier::device] = arguments.budget.device();
  options.planner.memory[Tier::host] = arguments.budget.host();
  options.seed = arguments.data.seed;
  options.optimizer.kind = OptimizerKind::sgd;  // no state to keep
  auto opened = Session::open(network, Session::evaluation_variants(held_out, arguments.step.batch), options);
  if (const PlanResult* const result = std::get_if<PlanResult>(&opened)) {
    fmt::print(stderr, "tide: {}\n", infeasible_text(*result, "one sample", options.planner, ""));
    return kInfeasible;
  }
  Session& session = *std::get<std::unique_ptr<Session>>(opened);
  if (!arguments.checkpoint.empty()) session.restore(load_checkpoint(arguments.checkpoint).tensors, 0, false);
  const Session::Evaluation evaluation = session.evaluate(held_out, arguments.step.batch);
  if (arguments.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"data", held_out.name()},
                                              {"samples", held_out.size()},
                                              {"loss", evaluation.loss},
                                              {"accuracy", evaluation.accuracy}}
                           .dump(2));
  else
    fmt::print("{} on {} samples of {}: loss {:.4f}, accuracy {:.2f}%{}\n", network->name, held_out.size(),
               held_out.name(), evaluation.loss, 100 * evaluation.accuracy,
               arguments.checkpoint.empty() ? " (untrained: no --resume was given)" : "");
  return kDone;
}

}  // namespace

Command eval_command(CLI::App& root) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App* app = root.add_subcommand("eval", "Loss and accuracy of a checkpoint, forward only");
  arguments->model.add_to(*app);
  arguments->step.add_to(*app);
  arguments->budget.add_to(*app);
  arguments->data.add_to(*app);
  app->add_option("--resume", arguments->checkpoint, "The checkpoint (tide train --save)");
  app->add_flag("--json", arguments->json, "Print one JSON object");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
