#include "cli/planner_options.h"

namespace tide {

void PlannerArguments::add_to(CLI::App& app, bool with_policy) {
  if (with_policy) app.add_option("--policy", policy, "How to plan (see tide compare)")->capture_default_str();
  app.add_option(
         "--parameters", parameters,
         "Where parameters and optimizer state rest: device, host, or auto (in host memory where the budget is short)")
      ->capture_default_str();
  app.add_option(
         "--allow", allow,
         "What a plan may do to the numbers: identical, not a bit; reordered, sums in another order (sub-batches); "
         "changed, batch norm over sub-batches")
      ->capture_default_str();
  app.add_option(
         "--batch-norm", batch_norm,
         "exact: in sub-batches too, batch norm has the statistics of the whole batch; plain: of the sub-batch, which "
         "--allow changed has to permit")
      ->capture_default_str();
  app.add_option("--sub-batch", sub_batch,
                 "Cut the batch into sub-batches of this many samples; 0: the policy decides, as far as --allow goes")
      ->capture_default_str();
  for (const Policy& each : policies())
    for (const PolicyOption& option : each.options) add_policy_option(app, option);
}

void PlannerArguments::add_policy_option(CLI::App& app, const PolicyOption& option) {
  Given& given = given_.emplace_back();
  given.option = &option;
  const std::string name(option.name), help(option.help);
  switch (option.form) {
    case PolicyOption::Form::value:
      app.add_option(name, given.value, help)->default_str(std::string(option.standard));
      return;
    case PolicyOption::Form::flag: app.add_flag(name, given.flag, help); return;
    case PolicyOption::Form::list:
      app.add_option(name, given.list, help)->delimiter(',')->allow_extra_args(false);
      return;
  }
}

Batch PlannerArguments::batch() const {
  if (batch_norm != "plain" && batch_norm != "exact")
    throw Error("--batch-norm is plain or exact, not '{}'", batch_norm);
  if (sub_batch < 0) throw Error("--sub-batch {} is negative", sub_batch);
  const Numerics allowed = numerics_from_name(allow);
  if (allowed == Numerics::identical && sub_batch == 0) return WholeBatch{};
  return SubBatches{.allowed = allowed, .exact_batch_norm = batch_norm == "exact", .samples = sub_batch};
}

PlannerOptions PlannerArguments::options(const PerTier<std::optional<Bytes>>& budgets) const {
  PlannerOptions options;
  options.memory = budgets;
  options.parameters = parameters_from_name(parameters);
  options.batch = batch();
  for (const Given& given : given_) {
    if (given.flag || !given.value.empty()) given.option->set(options.policy, given.value);
    for (const std::string& text : given.list) given.option->set(options.policy, text);
  }
  return options;
}

}  // namespace tide
