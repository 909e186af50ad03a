// tide predict: classes of images.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/cost_options.h"
#include "cli/data.h"
#include "train/checkpoint.h"
#include "train/scores.h"

namespace tide {
namespace {

struct PredictArguments {
  ModelArguments model;
  BudgetArguments budget;
  StepArguments step;
  DataArguments data;
  CostArguments cost;
  std::string checkpoint;
  std::vector<std::string> images;
  std::int64_t top = 5;
  bool json = false;
};

// The images of the command line as a data set.
class NamedImages final : public Dataset {
 public:
  NamedImages(const std::vector<std::string>& files, const ImageOptions& options, std::int64_t labels)
      : files_(files), options_(options), labels_(labels) {}
  [[nodiscard]] std::string name() const override { return "images"; }
  [[nodiscard]] std::int64_t size() const override { return std::ssize(files_); }
  [[nodiscard]] Shape sample() const override { return options_.sample; }
  [[nodiscard]] std::int64_t classes() const override { return options_.classes; }
  [[nodiscard]] std::int64_t labels_per_sample() const override { return labels_; }
  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    const std::string& name = files_[static_cast<std::size_t>(index)];
    const MappedFile file(name);
    read_image({.name = name, .bytes = file.bytes(), .owned = {}}, options_, values);
    std::fill(labels.begin(), labels.end(), 0);  // nobody knows
  }

 private:
  std::vector<std::string> files_;
  ImageOptions options_;
  std::int64_t labels_;
};

struct Guess {
  std::size_t place;
  double probability;
};

// Of one sample: its classes, or of an image of classes how much of it each has.
std::vector<Guess> guesses_of(const NamedTensor& result, std::int64_t sample, std::int64_t top) {
  const std::int64_t classes = result.shape.channels(), positions = result.shape.positions();
  std::vector<float> shares(static_cast<std::size_t>(classes), 0.0F), one(shares.size());
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::int64_t c = 0; c < classes; ++c)
      one[static_cast<std::size_t>(c)] =
          result.values[static_cast<std::size_t>((sample * classes + c) * positions + p)];
    if (positions == 1)
      shares = one;
    else
      shares[largest(one, 1)[0]] += 1.0F / static_cast<float>(positions);
  }
  std::vector<Guess> guesses;
  for (const std::size_t place : largest(shares, static_cast<std::size_t>(top)))
    guesses.push_back({place, static_cast<double>(shares[place])});
  return guesses;
}

void print(const PredictArguments& arguments, const std::vector<std::string>& names, const Session::Answers& answers,
           nlohmann::ordered_json& all) {
  const NamedTensor& result = answers.results.back();
  for (std::size_t i = 0; i < answers.samples.size(); ++i) {
    const std::string& image = arguments.images[static_cast<std::size_t>(answers.samples[i])];
    nlohmann::ordered_json entry{{"image", image}, {"classes", nlohmann::ordered_json::array()}};
    if (!arguments.json) fmt::print("{}\n", image);
    for (const Guess& guess : guesses_of(result, static_cast<std::int64_t>(i), arguments.top)) {
      const std::string name = guess.place < names.size() ? names[guess.place] : std::to_string(guess.place);
      entry["classes"].push_back({{"class", guess.place}, {"name", name}, {"probability", guess.probability}});
      if (!arguments.json) fmt::print("  {:6.2f}%  {}\n", 100 * guess.probability, name);
    }
    all.push_back(std::move(entry));
  }
}

int run(PredictArguments arguments) {
  if (arguments.top < 1) throw Error("--top {} is not possible; show at least 1", arguments.top);
  const Model model = arguments.model.open();
  if (!model.network->has_loss() || model.network->classes() == 0)
    throw Error("{} has no loss over classes, so its answers are no classes", model.network->name);
  if (arguments.checkpoint.empty() && arguments.model.weights.empty() && model.values.empty())
    throw Error("{} knows nothing yet; give it --resume FILE or --weights FILE", model.network->name);
  Checkpoint checkpoint;
  if (!arguments.checkpoint.empty()) checkpoint = load_checkpoint(arguments.checkpoint);
  arguments.data.reading = checkpoint.reading;
  const NamedImages images(arguments.images, arguments.data.one_image(*model.network), model.network->labels_of_data());
  std::unique_ptr<Target> target = arguments.cost.running_target(arguments.step);
  SessionOptions options;
  arguments.step.apply_to(options);
  options.planner.memory = arguments.budget.resolve(*target);
  options.optimizer.kind = OptimizerKind::sgd;  // no state to keep
  options.keep_results = true;
  const std::int64_t batch = std::min<std::int64_t>(arguments.step.batch, images.size());
  auto opened = Session::open(model.network, Session::evaluation_variants(images, batch), options, std::move(target));
  if (const PlanResult* const result = std::get_if<PlanResult>(&opened)) {
    fmt::print(stderr, "tide: {}\n", infeasible_text(*result, "one sample", options.planner, ""));
    return kInfeasible;
  }
  Session& session = *std::get<std::unique_ptr<Session>>(opened);
  for (const std::string& note : model.notes) fmt::print(stderr, "tide: {}\n", note);
  set_values(session, model);
  if (!arguments.checkpoint.empty()) session.restore(checkpoint.tensors, 0, false);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  session.evaluate(images, batch,
                   [&](const Session::Answers& answers) { print(arguments, checkpoint.classes, answers, all); });
  if (arguments.json) fmt::print("{}\n", all.dump(2));
  return kDone;
}

}  // namespace

Command predict_command(CLI::App& root) {
  auto arguments = std::make_shared<PredictArguments>();
  CLI::App* app = root.add_subcommand("predict", "Classes of images, with their probabilities");
  arguments->model.add_to(*app);
  arguments->model.add_weights_to(*app);
  app->add_option("IMAGE", arguments->images, "JPEG or PNG files")->required();
  arguments->step.add_to(*app);
  arguments->budget.add_to(*app);
  arguments->data.add_to(*app);
  arguments->cost.add_running_to(*app);
  app->add_option("--resume", arguments->checkpoint, "The checkpoint (tide train --save)");
  app->add_option("--top", arguments->top, "So many classes of each image")->capture_default_str();
  app->add_flag("--json", arguments->json, "Print one JSON array");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tide
