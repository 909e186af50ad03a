// What is left unsaid means the same to the program and to the library.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "cli/run_tide.h"
#include "plan/plan_json.h"
#include "train/plan_network.h"
#include "train/trainer.h"
#include "zoo/zoo.h"

namespace tide::test {
namespace {

using nlohmann::json;

NetworkPtr digits_network() { return std::make_shared<const Network>(make_model("digits")); }

// Nothing is named but the backend, where a build has none of the default.
struct Unsaid {
  SessionOptions options;
  std::string words = "digits ";
};

Unsaid unsaid() {
  Unsaid result;
  try {
    static_cast<void>(make_backend(result.options.backend));
  } catch (const Error&) {
    result.options.backend = "reference";
    result.words += "--backend reference ";
  }
  return result;
}

// The budget is short, so that fusing, resting, moving and recomputing all matter; none: no budget.
std::vector<std::optional<Bytes>> budgets(const Unsaid& unsaid) {
  const Bytes peak = summarize(*plan_network(digits_network(), {}, unsaid.options).plan).peak[Tier::device];
  return {std::nullopt, Bytes(peak.count() * 9 / 10), Bytes(peak.count() * 6 / 10)};
}

std::string budget_words(const std::optional<Bytes>& memory) {
  return memory ? fmt::format("--memory {} ", memory->count()) : "";
}

TEST(Defaults, OfTidePlanAndOfPlanNetwork) {
  const TemporaryFolder folder;
  const std::string saved = (folder.path() / "plan.json").string();
  for (const bool training : {true, false}) {
    Unsaid job = unsaid();
    for (const std::optional<Bytes>& memory : budgets(job)) {
      const std::string words = "plan " + job.words + budget_words(memory) + (training ? "" : "--inference ");
      SCOPED_TRACE(words);
      const ProgramRun run = run_tide(words + "--save " + saved);
      ASSERT_EQ(run.code, 0) << run.err;
      job.options.planner = within(memory);
      const PlanResult result = plan_network(digits_network(), {.training = training}, job.options);
      ASSERT_TRUE(result.plan);
      EXPECT_EQ(file_text(saved), to_json(*result.plan) + '\n');
    }
  }
}

TEST(Defaults, OfTideTrainAndOfASession) {
  for (const std::string extra :
       {"", "--steps 50 ", "--batch 12 --steps 5 --optimizer adam "}) {  // an epoch, or a little more
    Unsaid job = unsaid();
    for (const std::optional<Bytes>& memory : {budgets(job).front(), budgets(job).back()}) {
      const std::string words = "train " + job.words + budget_words(memory) + extra + "--json";
      SCOPED_TRACE(words);
      const ProgramRun run = run_tide(words);
      ASSERT_EQ(run.code, 0) << run.err;
      const json program = json::parse(run.out);

      TrainingOptions training;
      if (extra.starts_with("--steps")) training.steps = 50;
      if (extra.starts_with("--batch"))
        training.batch = 12, training.steps = 5, job.options.optimizer.kind = OptimizerKind::adam;
      const Split data = split(digits());
      job.options.planner = within(memory);
      auto opened =
          Session::open(digits_network(), training_variants(training, *data.train, data.validation.get()), job.options);
      Session& session = *std::get<std::unique_ptr<Session>>(opened);
      const TrainingReport report = train(session, training, *data.train, data.validation.get());
      EXPECT_EQ(program["weights_hash"], fmt::format("{:016x}", session.weights_hash()));
      EXPECT_EQ(program["steps"], report.steps);
      EXPECT_EQ(program["loss"], report.loss);
      EXPECT_EQ(program["accuracy"], report.validation->accuracy);
      EXPECT_EQ(program["planned_peak_bytes"],
                summarize(session.plan({training.batch, true})).peak[Tier::device].count());
    }
  }
}

// As the help of a command says it.
std::string told_default(const std::string& help, const std::string& option) {
  std::smatch found;
  const bool is_told = std::regex_search(help, found, std::regex(option + R"( [A-Z]+(?:=| \[)([^\]\s]+))"));
  return is_told ? found[1].str() : "nothing";
}

TEST(Defaults, ThatTheHelpTellsAreTheLibrarys) {
  const SessionOptions session;
  const TrainingOptions training;
  const std::map<std::string, std::string> known{
      {"--batch", fmt::format("{}", training.batch)},
      {"--rules", std::string(rules_name(session.rules))},
      {"--optimizer", std::string(optimizer_name(session.optimizer.kind))},
      {"--momentum", fmt::format("{}", session.optimizer.momentum)},
      {"--weight-decay", fmt::format("{}", session.optimizer.weight_decay)},
      {"--clip", fmt::format("{}", session.optimizer.clip_norm)},
      {"--threads", fmt::format("{}", session.threads)},
      {"--precision", std::string(precision_name(session.precision))},
      {"--seed", fmt::format("{}", training.seed)},
      {"--policy", session.policy},
      {"--parameters", std::string(parameters_name(session.planner.parameters))},
      {"--allow", std::string(numerics_name(allowed_by(session.planner.batch)))},
      {"--batch-norm", has_exact_batch_norm(session.planner.batch) ? "exact" : "plain"},
      {"--sub-batch", fmt::format("{}", samples_asked(session.planner.batch))},
      {"--validation", fmt::format("{}", kValidationFraction)},
      {"--epochs", fmt::format("{}", training.epochs)},
      {"--schedule", std::string(schedule_name(training.schedule.kind))},
      {"--step-factor", fmt::format("{}", training.schedule.step_factor)}};
  EXPECT_EQ(training.seed, session.seed);
  EXPECT_EQ(training.batch, StepVariant{}.batch);
  const std::string help = run_tide("train --help").out;
  for (const auto& [option, value] : known) EXPECT_EQ(told_default(help, option), value) << option;
}

// What a policy declares as the standard of an option is what it does without it.
void expect_standard(const Policy& policy, const PolicyOption& option) {
  SCOPED_TRACE(option.name);
  Unsaid job = unsaid();
  job.options.policy = policy.name;
  int planned = 0;
  for (const std::optional<Bytes>& memory : budgets(unsaid())) {
    job.options.planner = within(memory);
    const PlanResult without = plan_network(digits_network(), {}, job.options);
    option.set(job.options.planner.policy, std::string(option.standard));
    const PlanResult with = plan_network(digits_network(), {}, job.options);
    EXPECT_EQ(without.floor[Tier::device], with.floor[Tier::device]);
    ASSERT_EQ(without.plan.has_value(), with.plan.has_value());
    if (!without.plan) continue;
    ++planned;
    EXPECT_EQ(to_json(*without.plan), to_json(*with.plan));
  }
  EXPECT_GE(planned, 1);
}

TEST(Defaults, OfPoliciesAreWhatTheyDeclare) {
  int options = 0;
  for (const Policy& policy : policies())
    for (const PolicyOption& option : policy.options)
      if (option.form == PolicyOption::Form::value) {
        expect_standard(policy, option);
        ++options;
      }
  EXPECT_GE(options, 5);
}

}  // namespace
}  // namespace tide::test
