#include "held_session.h"

#include <algorithm>
#include <numeric>

#include "errors.h"

namespace tide::python {
namespace {

std::string moment_name(const Parameter& parameter, Role role) {
  return fmt::format("{}.{}", parameter.name, role_name(role));
}

constexpr std::array kMoments{Role::first_moment, Role::second_moment};

}  // namespace

HeldSession::HeldSession(NamedNetwork network, std::set<StepVariant> variants, Settings settings)
    : network_(std::move(network)), settings_(std::move(settings)) {
  if (!settings_.device.empty())
    throw Error("a session runs on a backend: give backend=, and device= only to plan for one that is not here");
  with(variants, [](Session&) {});
}

std::optional<PlanResult> HeldSession::open(const std::set<StepVariant>& variants) {
  std::unique_ptr<Target> target = settings_.target();
  auto opened =
      Session::open(network_.network(), {variants.begin(), variants.end()}, settings_.session, std::move(target));
  if (PlanResult* const result = std::get_if<PlanResult>(&opened)) return std::move(*result);
  session_ = std::move(std::get<std::unique_ptr<Session>>(opened));
  variants_ = variants;
  return std::nullopt;
}

void HeldSession::ensure(const std::set<StepVariant>& variants) {
  std::set<StepVariant> all = variants_;
  all.insert(variants.begin(), variants.end());
  if (session_ != nullptr && all.size() == variants_.size()) return;
  const auto raise = [&](const PlanResult& small) {
    const nb::gil_scoped_acquire python;
    raise_infeasible(small, settings_.session.policy, settings_.session.planner);
  };
  if (session_ == nullptr) {
    if (const std::optional<PlanResult> small = open(all)) raise(*small);
    for (const NamedArray& array : network_.arrays())
      if (const std::optional<std::vector<float>> values = network_.start_value(array))
        session_->set_parameter(array.id, *values);
    return;
  }
  const std::vector<NamedTensor> state = session_->state();
  const std::uint64_t steps = session_->steps_done();
  const std::set<StepVariant> before = variants_;
  session_.reset();  // its memory is needed
  const std::optional<PlanResult> small = open(all);
  if (small && open(before)) throw Error("the session cannot be opened again as it was; is memory= 'auto'?");
  session_->restore(state, steps);
  if (small) raise(*small);
}

HeldSession::Metric HeldSession::step(nb::handle samples, nb::handle targets, double learning_rate) {
  const ArrayBatch batch(*network_.network(), samples, targets_by_loss(*network_.network(), targets));
  const StepVariant variant{batch.size(), true};
  return with({variant}, [&](Session& session) -> Metric {
    std::vector<std::int64_t> all(static_cast<std::size_t>(batch.size()));
    std::iota(all.begin(), all.end(), 0);
    const Executor::Metric metric = session.run(variant, batch, all, learning_rate);
    return {metric.loss, metric.correct, metric.answers};
  });
}

HeldSession::Evaluated HeldSession::evaluate(nb::handle samples, nb::handle targets, std::int64_t batch, bool answers) {
  const ArrayBatch data(*network_.network(), samples, targets_by_loss(*network_.network(), targets),
                        answers ? Unlabelled::allowed : Unlabelled::refused);
  if (batch == 0) batch = data.size();
  if (batch < 1) throw Error("batch {} is not possible: a batch has at least 1 sample", batch);
  if (answers && !settings_.session.keep_results)
    throw Error("the session keeps no answers; open it with answers=True");
  const std::vector<StepVariant> needed = Session::evaluation_variants(data, batch);
  struct Collected {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };
  std::map<std::string, Collected> collected;
  Evaluated result;
  result.evaluation = with({needed.begin(), needed.end()}, [&](Session& session) {
    const auto observe = [&](const Session::Answers& of) {
      for (const NamedTensor& tensor : of.results) {
        Collected& one = collected[tensor.name];
        if (one.shape.empty()) one.shape = extents_of(tensor.shape.with_batch(data.size()));
        one.values.insert(one.values.end(), tensor.values.begin(), tensor.values.end());
      }
    };
    return session.evaluate(data, batch, answers ? Session::AnswerObserver(observe) : Session::AnswerObserver());
  });
  for (auto& [name, one] : collected) result.answers.emplace(name, array_of(std::move(one.values), one.shape));
  return result;
}

nb::dict HeldSession::weights() {
  const std::vector<NamedTensor> state = with({}, [](Session& session) { return session.state(); });
  std::map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : state) by_name.emplace(tensor.name, &tensor);
  nb::dict result;
  for (const NamedArray& array : network_.arrays()) {
    const auto found = by_name.find(network_.network()->parameters[array.id.index()].name);
    if (found == by_name.end()) continue;
    result[array.name.array.c_str()] =
        array_of(to_array_order(array.name, std::span<const float>(found->second->values)), array.shape);
  }
  return result;
}

void HeldSession::set_weights(const nb::dict& weights) {
  std::vector<std::pair<ParameterId, std::vector<float>>> given;
  for (const auto& [key, value] : weights) {
    const auto name = nb::cast<std::string>(key);
    const NamedArray& array = network_.array(name);
    const ForeignTensor tensor = tensor_of(value, fmt::format("array '{}'", name));
    if (product_of(tensor.shape) != product_of(array.shape))
      throw Error("array '{}' has extents {}, not {}", name, extents_text(array.shape), extents_text(tensor.shape));
    const std::vector<float> values = values_of(tensor);
    given.emplace_back(array.id, to_parameter_order(array.name, std::span<const float>(values)));
  }
  with({}, [&](Session& session) {
    for (const auto& [id, values] : given) session.set_parameter(id, values);
  });
}

nb::dict HeldSession::moments() {
  const std::vector<NamedTensor> state = with({}, [](Session& session) { return session.state(); });
  std::map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : state) by_name.emplace(tensor.name, &tensor);
  nb::dict result;
  for (const NamedArray& array : network_.arrays()) {
    nb::dict of_array;
    for (const Role role : kMoments) {
      const auto found = by_name.find(moment_name(network_.network()->parameters[array.id.index()], role));
      if (found == by_name.end()) continue;
      of_array[std::string(role_name(role)).c_str()] =
          array_of(to_array_order(array.name, std::span<const float>(found->second->values)), array.shape);
    }
    if (of_array.size() > 0) result[array.name.array.c_str()] = of_array;
  }
  return result;
}

void HeldSession::set_moments(const nb::dict& moments, std::uint64_t steps) {
  std::map<std::string, std::vector<float>> given;
  for (const auto& [key, value] : moments) {
    const auto name = nb::cast<std::string>(key);
    const NamedArray& array = network_.array(name);
    for (const auto& [word, moment] : nb::cast<nb::dict>(value)) {
      const auto role = nb::cast<std::string>(word);
      const ForeignTensor tensor = tensor_of(moment, fmt::format("{} of '{}'", role, name));
      if (product_of(tensor.shape) != product_of(array.shape))
        throw Error("{} of '{}' has extents {}, not {}", role, name, extents_text(tensor.shape),
                    extents_text(array.shape));
      const std::vector<float> values = values_of(tensor);
      given[fmt::format("{}.{}", network_.network()->parameters[array.id.index()].name, role)] =
          to_parameter_order(array.name, std::span<const float>(values));
    }
  }
  with({}, [&](Session& session) {
    std::vector<NamedTensor> state = session.state();
    for (NamedTensor& tensor : state)
      if (const auto found = given.find(tensor.name); found != given.end()) {
        tensor.values = std::move(found->second);
        given.erase(found);
      }
    if (!given.empty()) throw Error("the session's optimizer has no '{}'", given.begin()->first);
    session.restore(state, steps);
  });
}

void HeldSession::save(const std::string& path) {
  with({}, [&](Session& session) {
    save_checkpoint(path, {session.network().name, session.steps_done(), seed(), session.state()});
  });
}

void HeldSession::save_weights(const std::string& path) {
  const std::vector<NamedTensor> state = with({}, [](Session& session) { return session.state(); });
  std::map<std::string, std::vector<float>> values;
  for (const NamedTensor& tensor : state) values.emplace(tensor.name, tensor.values);
  std::erase_if(values, [&](const auto& one) {
    return std::ranges::none_of(network_.network()->parameters,
                                [&](const Parameter& parameter) { return parameter.name == one.first; });
  });
  tide::save_weights(*network_.network(), network_.names(), values, path);
}

void HeldSession::load(const std::string& path, bool with_optimizer) {
  with({}, [&](Session& session) {
    const Checkpoint checkpoint = load_checkpoint(path);
    session.restore(checkpoint.tensors, checkpoint.steps, with_optimizer);
  });
}

MadePlan HeldSession::plan(std::int64_t batch, bool training) {
  return with({{batch, training}}, [&](Session& session) {
    const Plan& plan = session.plan({batch, training});
    MadePlan made;
    made.plan = std::make_shared<const Plan>(plan);
    made.predicted_seconds = simulate(plan, session.cost()).seconds;
    const Step step =
        session.target().build(network_.network(), step_options({batch, training}, settings_.session), {});
    made.ideal_seconds = ideal_seconds(step, session.cost());
    made.source = session.target().source();
    made.model = network_.network()->name;
    return made;
  });
}

nb::dict HeldSession::memory() {
  struct Sizes {
    Bytes device, host, disk, measured;
  };
  const Sizes sizes = with({}, [&](Session& session) {
    Bytes measured;
    for (const StepVariant& variant : variants_)
      if (variant.training) measured = std::max(measured, session.executor(variant).high_water());
    return Sizes{session.arena_bytes(), session.host_bytes(), session.disk_bytes(), measured};
  });
  nb::dict row;
  row["device_bytes"] = sizes.device.count();
  row["host_bytes"] = sizes.host.count();
  row["disk_bytes"] = sizes.disk.count();
  row["measured_bytes"] = sizes.measured.count();
  return row;
}

std::string HeldSession::weights_hash() {
  return fmt::format("{:016x}", with({}, [](Session& session) { return session.weights_hash(); }));
}

std::uint64_t HeldSession::steps_done() {
  return with({}, [](Session& session) { return session.steps_done(); });
}

}  // namespace tide::python
