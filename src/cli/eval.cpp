// tide eval: loss and accuracy of a checkpoint.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/cost_options.h"
#include "cli/data.h"
#include "network/adapt.h"
#include "train/checkpoint.h"
#include "train/scores.h"

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

void print(const EvalArguments& arguments, const Network& network, const Dataset& data,
           const Session::Evaluation& evaluation, const std::optional<Scores>& scores) {
  std::vector<double> areas;  // one, or none
  if (scores)
    if (const auto mean = scores->mean_intersection_over_union()) areas.push_back(*mean);
  const bool many = scores && network.classes() > 5;
  if (arguments.json) {
    nlohmann::ordered_json result{
        {"data", data.name()}, {"samples", data.size()}, {"loss", evaluation.loss}, {"accuracy", nullptr}};
    if (evaluation.accuracy) result["accuracy"] = *evaluation.accuracy;
    if (scores) result["top1"] = scores->top1(), result["top5"] = scores->top5();
    if (!areas.empty()) result["mean_iou"] = areas.front();
    return fmt::print("{}\n", result.dump(2));
  }
  const bool given = !arguments.checkpoint.empty() || !arguments.model.weights.empty();
  fmt::print("{} on {} samples of {}: loss {:.4f}{}{}{}{}\n", network.name, data.size(), data.name(), evaluation.loss,
             evaluation.accuracy ? fmt::format(", accuracy {:.2f}%", 100 * *evaluation.accuracy) : "",
             many ? fmt::format(", top-5 {:.2f}%", 100 * scores->top5()) : "",
             areas.empty() ? "" : fmt::format(", mean IoU {:.2f}%", 100 * areas.front()),
             given || arguments.model.model.ends_with(".onnx") ? "" : " (untrained: no --resume was given)");
}

int run(EvalArguments arguments) {
  const Model model = arguments.model.open();
  NetworkPtr network = model.network;
  if (!network->has_loss())
    throw Error("{} has no loss layer, so there is nothing to compare with the labels", network->name);
  Checkpoint checkpoint;
  if (!arguments.checkpoint.empty()) checkpoint = load_checkpoint(arguments.checkpoint);
  arguments.data.reading = checkpoint.reading;
  const Split data = arguments.data.load(*network, arguments.step.batch);
  const Dataset& held_out = data.validation ? *data.validation : *data.train;
  if (held_out.has_gaps()) network = adapt(network, {.gaps_in_labels = true});
  std::unique_ptr<Target> target = arguments.cost.running_target(arguments.step);
  SessionOptions options = session_options(arguments, *target);
  options.keep_results = network->classes() > 0;
  auto opened =
      Session::open(network, Session::evaluation_variants(held_out, arguments.step.batch), options, std::move(target));
  if (const PlanResult* const result = std::get_if<PlanResult>(&opened)) {
    fmt::print(stderr, "tide: {}\n", infeasible_text(*result, "one sample", options.planner, ""));
    return kInfeasible;
  }
  Session& session = *std::get<std::unique_ptr<Session>>(opened);
  for (const std::string& note : model.notes) fmt::print(stderr, "tide: {}\n", note);
  set_values(session, model);
  if (!arguments.checkpoint.empty()) session.restore(checkpoint.tensors, 0, false);
  std::optional<Scores> scores;
  if (options.keep_results) scores.emplace(*network);
  const Session::Evaluation evaluation = session.evaluate(
      held_out, arguments.step.batch,
      scores ? [&](const Session::Answers& answers) { scores->add(answers); } : Session::AnswerObserver());
  print(arguments, *network, held_out, evaluation, scores);
  return kDone;
}

}  // namespace

Command eval_command(CLI::App& root) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App* app = root.add_subcommand(
      "eval", "Loss and accuracy of a checkpoint (top-5 and mean IoU where they say something), forward only");
  arguments->model.add_to(*app);
  arguments->model.add_weights_to(*app);
  arguments->step.add_to(*app);
  arguments->budget.add_to(*app);
  arguments->data.add_to(*app);
  arguments->cost.add_running_to(*app);
  app->add_option("--resume", arguments->checkpoint, "The checkpoint (tide train --save)");
  app->add_flag("--json", arguments->json, "Print one JSON object");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
