// tide eval: loss and accuracy of a checkpoint.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/cost_options.h"
#include "cli/data.h"
#include "train/checkpoint.h"

namespace tide {
namespace {

struct EvalArguments {
  ModelArguments model;
  BudgetArguments budget;
  StepArguments step;
  DataArguments data;
  CostArguments cost;
  std::string checkpoint;
  bool json = false;
};

SessionOptions session_options(const EvalArguments& arguments, const Target& target) {
  SessionOptions options;
  arguments.step.apply_to(options);
  options.planner.memory = arguments.budget.resolve(target);
  options.seed = arguments.data.seed;
  options.optimizer.kind = OptimizerKind::sgd;  // no state to keep
  options.executor.link_bytes_per_second = arguments.cost.link_bytes_per_second();
  return options;
}

int run(const EvalArguments& arguments) {
  const NetworkPtr network = arguments.model.load();
  if (!network->has_loss())
    throw Error("{} has no loss layer, so there is nothing to compare with the labels", network->name);
  const Split data = arguments.data.load(*network, arguments.step.batch);
  const Dataset& held_out = data.validation ? *data.validation : *data.train;
  std::unique_ptr<Target> target = arguments.cost.running_target(arguments.step);
  const SessionOptions options = session_options(arguments, *target);
  auto opened =
      Session::open(network, Session::evaluation_variants(held_out, arguments.step.batch), options, std::move(target));
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
  arguments->cost.add_running_to(*app);
  app->add_option("--resume", arguments->checkpoint, "The checkpoint (tide train --save)");
  app->add_flag("--json", arguments->json, "Print one JSON object");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
