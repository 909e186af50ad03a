// Planning: one step, every policy side by side, the largest batch.
#include "plans.h"

#include "errors.h"
#include "named_network.h"

namespace tide::python {
namespace {

// Planning asks for steps again and again; between two of them Python may have something to say, such as Ctrl-C.
BuildStep interruptible(BuildStep build) {
  return [build = std::move(build)](const StepChoice& choice) {
    {
      const nb::gil_scoped_acquire python;
      check_signals();
    }
    return build(choice);
  };
}

BuildStep builder(const Target& target, const NetworkPtr& network, const StepOptions& options) {
  return interruptible(
      [&target, network, options](const StepChoice& choice) { return target.build(network, options, choice); });
}

MadePlan plan_step(const NamedNetwork& network, std::int64_t batch, bool training, const nb::dict& given) {
  Settings settings = settings_of(given);
  std::optional<PlanResult> result;
  MadePlan made;
  {
    const nb::gil_scoped_release released;
    const std::unique_ptr<Target> target = settings.target();
    const StepOptions options = step_options({batch, training}, settings.session);
    const BuildStep build = builder(*target, network.network(), options);
    result = plan_on(*target, find_policy(settings.session.policy), build, settings.session.planner);
    if (result->plan) made.ideal_seconds = ideal_seconds(build({}), target->cost());
    made.source = target->source();
  }
  if (!result->plan) raise_infeasible(*result, settings.session.policy, settings.session.planner);
  made.predicted_seconds = result->seconds.value_or(0);
  made.plan_seconds = result->plan_seconds;
  made.check_seconds = result->check_seconds;
  made.floor = result->floor[Tier::device];
  made.model = network.network()->name;
  made.plan = std::make_shared<const Plan>(*std::move(result->plan));
  return made;
}

nb::dict summary_of(const MadePlan& made) {
  const Plan& plan = *made.plan;
  const PlanSummary summary = summarize(plan);
  nb::dict row;
  row["model"] = made.model;
  row["batch"] = batch_of(plan);
  row["policy"] = plan.policy;
  const std::optional<Bytes>& memory = plan.memory[Tier::device];
  row["memory_bytes"] = memory ? nb::cast(memory->count()) : nb::none();
  row["numerics"] = std::string(numerics_name(plan.numerics));
  row["peak_bytes"] = summary.peak[Tier::device].count();
  row["host_peak_bytes"] = summary.peak[Tier::host].count();
  row["peak_data_bytes"] = summary.peak_data_bytes.count();
  row["peak_task"] = summary.peak_task;
  row["data_bytes"] = summary.data_bytes.count();
  row["floor_bytes"] = made.floor.count();
  row["tasks"] = summary.tasks;
  row["recomputed_tasks"] = summary.recomputed_tasks;
  row["offloaded_bytes"] = summary.offloaded_bytes.count();
  row["prefetched_bytes"] = summary.prefetched_bytes.count();
  row["resting_bytes"] = summary.resting_bytes.count();
  row["rounds"] = summary.rounds;
  row["sub_batch"] = sub_batch_of(plan);
  row["predicted_seconds"] = made.predicted_seconds;
  row["ideal_seconds"] = made.ideal_seconds;
  row["plan_seconds"] = made.plan_seconds;
  row["check_seconds"] = made.check_seconds;
  row["times"] = made.source;
  nb::dict classes;
  for (int c = 0; c < kTensorClasses; ++c)
    classes[std::string(class_name(static_cast<TensorClass>(c))).c_str()] =
        summary.classes[static_cast<std::size_t>(c)].count();
  classes["workspace"] = summary.workspace_at_peak.count();
  row["classes"] = classes;
  return row;
}

nb::list steps_of(const MadePlan& made) {
  nb::list rows;
  for (const StepUsage& usage : summarize(*made.plan).steps) {
    nb::dict row;
    row["step"] = usage.step;
    row["task"] = usage.task;
    row["live_data_bytes"] = usage.live_data_bytes.count();
    row["live_data_tensors"] = usage.live_data_tensors;
    row["live_bytes"] = usage.live_bytes.count();
    rows.append(row);
  }
  return rows;
}

// What each storage is called by: the first tensor in it.
std::vector<std::string> storage_names(const Step& step) {
  std::vector<std::string> names(step.storages.size());
  for (std::size_t t = 0; t < step.tensors.size(); ++t) {
    const StorageId storage = step.tensors[t].storage;
    if (storage.valid() && names[storage.index()].empty()) names[storage.index()] = tensor_name(step, TensorId(t));
  }
  return names;
}

nb::list ops_of(const MadePlan& made) {
  nb::list rows;
  for (std::size_t p = 0; p < made.plan->phases.size(); ++p) {
    const Phase& phase = made.plan->phases[p];
    const std::vector<std::string> names = storage_names(*phase.step);
    for (std::size_t o = 0; o < phase.ops.size(); ++o) {
      const Op& op = phase.ops[o];
      nb::dict row;
      row["phase"] = p;
      row["op"] = o;
      row["lane"] = std::string(lane_name(op.lane));
      if (op.is_run()) {
        const Run& run = op.run();
        const bool again = phase.step->task(run.task).kind == TaskKind::replay;
        row["kind"] = again ? "run again" : "run";
        row["what"] = task_name(*phase.step, run.task);
        row["algorithm"] = phase.step->algorithms_of(run.task)[run.algorithm].name;
        row["bytes"] = workspace_bytes(*phase.step, run).count();
      } else {
        const Copy& copy = op.copy();
        row["kind"] = fmt::format("copy {} to {}", tier_name(copy.from), tier_name(copy.to));
        row["what"] = names[copy.storage.index()];
        row["algorithm"] = "";
        row["bytes"] = phase.step->storage(copy.storage).bytes.count();
      }
      row["waits"] = nb::cast(op.waits);
      rows.append(row);
    }
  }
  return rows;
}

nb::list stays_of(const MadePlan& made) {
  nb::list rows;
  for (std::size_t p = 0; p < made.plan->phases.size(); ++p) {
    const Phase& phase = made.plan->phases[p];
    const std::vector<std::string> names = storage_names(*phase.step);
    for (const Residency& stay : phase.residencies) {
      nb::dict row;
      row["phase"] = p;
      row["tensor"] = names[stay.storage.index()];
      row["class"] = std::string(class_name(phase.step->storage(stay.storage).tensor_class));
      row["tier"] = std::string(tier_name(stay.tier));
      row["first"] = stay.first;
      row["last"] = stay.last;
      row["address"] = stay.address.count();
      row["bytes"] = phase.step->storage(stay.storage).bytes.count();
      rows.append(row);
    }
  }
  return rows;
}

nb::object table_of(const MadePlan& made, const std::string& of) {
  nb::list rows;
  if (of == "ops")
    rows = ops_of(made);
  else if (of == "stays")
    rows = stays_of(made);
  else if (of == "steps")
    rows = steps_of(made);
  else
    throw Error("there is no table '{}'; there are ops, stays and steps", of);
  try {
    return nb::module_::import_("pandas").attr("DataFrame")(rows);
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    throw Error("table() needs pandas: pip install pandas; ops, stays and steps are the same as plain lists");
  }
}

struct ComparedPolicy {
  const Policy* policy;
  std::optional<PlanResult> result;  // none: it keeps parameters on the device, and they are to rest in host memory
};

nb::dict compared_row(const ComparedPolicy& compared, double bound) {
  nb::dict row;
  row["policy"] = std::string(compared.policy->name);
  row["feasible"] = compared.result && compared.result->plan;
  for (const char* column : {"numerics", "peak_bytes", "floor_bytes", "offloaded_bytes", "prefetched_bytes",
                             "recomputed_tasks", "predicted_seconds", "above_bound", "plan_seconds", "bottleneck_task"})
    row[column] = nb::none();
  if (!compared.result) return row;
  row["floor_bytes"] = compared.result->floor[Tier::device].count();
  row["plan_seconds"] = compared.result->plan_seconds;
  if (!compared.result->plan) {
    row["bottleneck_task"] = compared.result->bottleneck_task;
    return row;
  }
  const PlanSummary summary = summarize(*compared.result->plan);
  row["numerics"] = std::string(numerics_name(compared.result->plan->numerics));
  row["peak_bytes"] = summary.peak[Tier::device].count();
  row["offloaded_bytes"] = summary.offloaded_bytes.count();
  row["prefetched_bytes"] = summary.prefetched_bytes.count();
  row["recomputed_tasks"] = summary.recomputed_tasks;
  row["predicted_seconds"] = compared.result->seconds.value_or(0);
  row["above_bound"] = compared.result->seconds.value_or(0) / bound - 1;
  return row;
}

nb::dict compare_policies(const NamedNetwork& network, std::int64_t batch, bool training, const nb::dict& given) {
  Settings settings = settings_of(given);
  std::vector<ComparedPolicy> compared;
  LowerBound bound;
  double ideal = 0;
  std::string source;
  {
    const nb::gil_scoped_release released;
    const std::unique_ptr<Target> target = settings.target();
    const PlannerOptions& planner = settings.session.planner;
    const BuildStep build = builder(*target, network.network(), step_options({batch, training}, settings.session));
    target->cover(build, planner.memory[Tier::device]);
    ideal = ideal_seconds(build({}), target->cost());
    bound = fused_lower_bound(build, target->cost(), planner);
    for (const Policy& policy : policies()) {
      compared.push_back({&policy, std::nullopt});
      if (planner.parameters == Parameters::host && !policy.rests_parameters) continue;
      compared.back().result = plan_on(*target, policy, build, planner);
    }
    source = target->source();
  }
  nb::list rows;
  for (const ComparedPolicy& each : compared) rows.append(compared_row(each, bound.seconds));
  nb::dict result;
  result["ideal_seconds"] = ideal;
  result["lower_bound_seconds"] = bound.seconds;
  result["times"] = source;
  result["policies"] = rows;
  return result;
}

// As `tide fit` does it (docs/policies.md).
nb::dict fit_batch(const NamedNetwork& network, const nb::dict& given, const nb::object& progress) {
  Settings settings = settings_of(given);
  FitResult fit;
  bool is_largest = false;
  std::string source;
  {
    const nb::gil_scoped_release released;
    const std::unique_ptr<Target> target = settings.target();
    const PlannerOptions& planner = settings.session.planner;
    const Policy& policy = find_policy(settings.session.policy);
    if (!planner.memory[Tier::device])
      throw Error("fit needs a budget: give memory=, such as '12GiB', or device= with memory='device'");
    if (policy.cuts && allowed_by(planner.batch) != Numerics::identical)
      throw Error("in sub-batches any batch fits that one sample does; leave out allow= and the like for a whole one");
    const auto build = [&](std::int64_t size) {
      return builder(*target, network.network(), step_options({size, true}, settings.session));
    };
    FitProblem problem;
    problem.memory = planner.memory;
    problem.floor = [&](std::int64_t size) { return search_floor(policy, build(size), target->cost(), planner); };
    problem.plan = [&](std::int64_t size) { return search_any_plan(policy, build(size), target->cost(), planner); };
    problem.answer = [&](std::int64_t size, PlanResult found) {
      const bool is_whole = found.plan && found.plan->policy == policy.name && target->sheet() != nullptr;
      return is_whole ? std::move(found) : plan_on(*target, policy, build(size), planner);
    };
    const bool grows = policy.floor_grows != nullptr && policy.floor_grows(planner.policy);
    const bool host_limited = planner.memory[Tier::host].has_value();
    problem.grows = host_limited || (grows && target->sheet() != nullptr);
    is_largest = grows && target->sheet() != nullptr && !host_limited;
    problem.progress = [&](std::int64_t size, std::int64_t fits) {
      const nb::gil_scoped_acquire python;
      check_signals();
      if (!progress.is_none()) progress(size, fits);
    };
    fit = largest_fit(problem);
    source = target->source();
  }
  if (fit.size == 0) raise_infeasible(fit.plan, "batch 1", settings.session.planner, "");
  const PlanSummary summary = summarize(*fit.plan.plan);
  nb::dict row;
  row["batch"] = fit.size;
  row["is_largest"] = is_largest;
  row["policy"] = fit.plan.plan->policy;
  row["memory_bytes"] = settings.session.planner.memory[Tier::device]->count();
  row["peak_bytes"] = summary.peak[Tier::device].count();
  row["host_peak_bytes"] = summary.peak[Tier::host].count();
  row["offloaded_bytes"] = summary.offloaded_bytes.count();
  row["prefetched_bytes"] = summary.prefetched_bytes.count();
  row["recomputed_tasks"] = summary.recomputed_tasks;
  row["predicted_seconds"] = fit.plan.seconds.value_or(0);
  row["next_floor_bytes"] = fit.beyond.floor[Tier::device].count();
  row["next_bottleneck_task"] = fit.beyond.bottleneck_task;
  row["sizes_asked"] = fit.asked;
  row["search_seconds"] = fit.seconds;
  row["times"] = source;
  return row;
}

nb::list devices_list() {
  nb::list rows;
  for (const DeviceSheet& sheet : device_sheets()) {
    nb::dict row;
    row["name"] = std::string(sheet.name);
    row["description"] = std::string(sheet.description);
    row["memory_bytes"] = sheet.memory_bytes;
    rows.append(row);
  }
  return rows;
}

nb::list policies_list() {
  nb::list rows;
  for (const Policy& policy : policies()) {
    nb::dict row;
    row["name"] = std::string(policy.name);
    row["description"] = std::string(policy.description);
    rows.append(row);
  }
  return rows;
}

}  // namespace

void bind_plans(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<MadePlan>(module, "Plan", "One step as it would run: every task, copy and address, decided and checked.")
      .def_prop_ro("summary", &summary_of, nb::sig("def summary(self) -> dict"),
                   "What the plan amounts to, in numbers.")
      .def_prop_ro("steps", &steps_of, nb::sig("def steps(self) -> list[dict]"),
                   "Memory alive at each forward and backward task, as papers count them.")
      .def_prop_ro("ops", &ops_of, nb::sig("def ops(self) -> list[dict]"), "Every task and copy, in order.")
      .def_prop_ro("stays", &stays_of, nb::sig("def stays(self) -> list[dict]"),
                   "Where each tensor lies from which op to which.")
      .def("table", &table_of, "of"_a = "ops", nb::sig("def table(self, of: str = 'ops') -> object"),
           "ops, stays or steps as a pandas.DataFrame.")
      .def("to_json", [](const MadePlan& self) { return to_json(*self.plan); })
      .def(
          "save", [](const MadePlan& self, const std::string& path) { save_plan(*self.plan, path); }, "path"_a,
          "Writes the plan as a file that `tide train --plan` runs.")
      .def("__repr__", [](const MadePlan& self) {
        const PlanSummary summary = summarize(*self.plan);
        return fmt::format("<tidepool.Plan {} at batch {}: {}, peak {}, {} moved, {} tasks run again, {:.3g} s>",
                           self.model, batch_of(*self.plan), self.plan->policy, format_size(summary.peak[Tier::device]),
                           format_size(summary.offloaded_bytes + summary.prefetched_bytes), summary.recomputed_tasks,
                           self.predicted_seconds);
      });
  module.def("plan", &plan_step, "network"_a, "batch"_a, "training"_a, "options"_a);
  module.def("compare", &compare_policies, "network"_a, "batch"_a, "training"_a, "options"_a,
             nb::sig("def compare(network: Network, batch: int, training: bool, options: dict) -> dict"));
  module.def("fit", &fit_batch, "network"_a, "options"_a, "progress"_a = nb::none(),
             nb::sig("def fit(network: Network, options: dict, progress: object = None) -> dict"));
  module.def("devices", &devices_list, nb::sig("def devices() -> list[dict]"));
  module.def("policies", &policies_list, nb::sig("def policies() -> list[dict]"));
  module.def(
      "parse_size", [](const std::string& text) { return parse_size(text).count(); }, "text"_a);
  module.def(
      "format_size", [](std::int64_t bytes) { return format_size(Bytes(bytes)); }, "bytes"_a);
}

}  // namespace tide::python
