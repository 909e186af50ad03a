#include "cli/options.h"

#include <charconv>
#include <filesystem>
#include <fstream>

#include "backend/backend.h"
#include "base/size_text.h"
#include "models/weights.h"

namespace tide {
namespace {

Bytes free_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::int64_t kilobytes = 0;
  std::string unit;
  while (file >> name >> kilobytes >> unit)
    if (name == "MemAvailable:") return Bytes(checked_multiply(kilobytes, 1024));
  throw Error("--memory auto cannot tell how much memory is free here; give a size instead");
}

Bytes less_a_tenth(Bytes bytes) { return Bytes(bytes.count() / 10 * 9); }

constexpr std::string_view kTotal = "total:";

// REQUIRES: the text begins with kTotal.
Bytes beside_libraries(const std::string& text, const Target& target) {
  const Bytes total = parse_size(text.substr(kTotal.size()));
  // The recorded step is planned for later.
  const std::optional<Bytes> used = target.backend() != nullptr ? target.backend()->used_memory() : std::nullopt;
  if (!used)
    throw Error("--memory {} is for a device with memory of its own; use --backend cuda, or give a plain size", text);
  if (*used >= total) throw Error("--memory {}: context and libraries alone take {}", text, format_size(*used));
  return total - *used;
}

Bytes all_memory(const Target& target) {
  if (target.sheet() == nullptr) throw Error("--memory device needs a --device (see tide devices)");
  const Bytes all = target.sheet()->memory();
  if (all.is_zero()) throw Error("the memory of {} is not known; give --memory a size", target.sheet()->name);
  return all;
}

Bytes device_budget(const std::string& text, const Target& target) {
  if (text == "device") return all_memory(target);
  if (text.starts_with(kTotal)) return beside_libraries(text, target);
  if (text != "auto") return parse_size(text);
  const std::optional<Bytes> own = target.backend() != nullptr ? target.backend()->free_memory() : std::nullopt;
  return less_a_tenth(own ? *own : free_memory());
}

}  // namespace

Shape parse_sample(const std::string& text) {
  std::vector<std::int64_t> extents{1};
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    const auto [next, error] = std::from_chars(at, end, extents.emplace_back());
    const bool last = next == end;
    if (error != std::errc{} || extents.back() < 1 || (!last && *next != 'x') || extents.size() > Shape::kMostRank)
      throw Error("--input '{}' is not a shape; write channels x height x width, such as 3x224x224, or 1 to {} extents",
                  text, Shape::kMostRank - 1);
    if (last) return Shape(extents);
    at = next + 1;
  }
}

void ModelArguments::add_to(CLI::App& app) {
  app.add_option("MODEL", model, "Zoo name (see tide models), network file (net.json) or ONNX file (net.onnx)")
      ->required();
  app.add_option("--input", input, "Input of one sample as CxHxW, or 1 to 5 extents, instead of the model's own");
  app.add_option("--loss", loss,
                 "For files without a loss: cross-entropy, binary-cross-entropy, mean-squared-error or none")
      ->capture_default_str();
}

void ModelArguments::add_weights_to(CLI::App& app) {
  app.add_option(
      "--weights", weights,
      "Begin with the weights of this safetensors file, by PyTorch's names; layers for other classes start anew");
}

ModelRequest ModelArguments::request() const {
  return {.model = model,
          .sample = input.empty() ? std::nullopt : std::optional(parse_sample(input)),
          .loss = loss == "none" ? "" : loss};
}

Model ModelArguments::open() const {
  Model opened = load_model(request());
  if (weights.empty()) return opened;
  std::vector<WeightNames> known = weight_names(*opened.network, model);
  if (!opened.names.empty()) known.push_back({"the model's file", opened.names});
  LoadedWeights loaded = load_weights(*opened.network, known, weights);
  for (auto& [name, values] : loaded.values) opened.values[name] = std::move(values);
  opened.notes.insert(opened.notes.end(), loaded.notes.begin(), loaded.notes.end());
  return opened;
}

void set_values(Session& session, const Model& model) {
  const Network& network = session.network();
  for (std::size_t p = 0; p < network.parameters.size(); ++p)
    if (const auto found = model.values.find(network.parameters[p].name); found != model.values.end())
      session.set_parameter(ParameterId(p), found->second);
}

void BudgetArguments::add_to(CLI::App& app) {
  app.add_option(
      "--memory", memory,
      "Device memory budget, such as 12GiB; auto: what is free, less a tenth; total:12GiB (cuda): with all that the "
      "context and the libraries take");
  app.add_option("--host-memory", host_memory, "Host memory budget for what leaves the device");
  app.add_option("--disk-memory", disk_memory, "Disk budget for what does not fit into host memory");
}

PerTier<std::optional<Bytes>> BudgetArguments::resolve(const Target& target) const {
  PerTier<std::optional<Bytes>> budgets;
  if (memory) budgets[Tier::device] = device_budget(*memory, target);
  if (host_memory)
    budgets[Tier::host] = *host_memory == "auto" ? less_a_tenth(free_memory()) : parse_size(*host_memory);
  if (disk_memory) budgets[Tier::disk] = parse_size(*disk_memory);
  return budgets;
}

void StepArguments::add_to(CLI::App& app) {
  app.add_flag("--fuse,!--no-fuse", fuse,
               "Batch norm, addition and relu as one task, small parameters updated together (default, but not under "
               "the rules superneurons)");
  app.add_option("--batch", batch, "Samples per step")->capture_default_str();
  app.add_option("--rules", rules, "Dependency rules: minimal (our kernels') or superneurons (the paper's)")
      ->capture_default_str();
  app.add_option("--optimizer", optimizer, "sgd, momentum, nesterov, adam or adamw")->capture_default_str();
  app.add_option("--momentum", momentum, "Of momentum and nesterov")->capture_default_str();
  app.add_option("--weight-decay", weight_decay, "Weight decay")->capture_default_str();
  app.add_option("--clip", clip, "Clip gradients to this norm; 0: never")->capture_default_str();
  app.add_option("--backend", backend, "cpu, cuda, reference or null");
  app.add_option("--threads", threads, "Compute threads; 0: all cores")->capture_default_str();
  app.add_option("--precision", precision,
                 "cuda: fp32; tf32, with products of floats in TF32; or bf16, with layer outputs in bfloat16 as well")
      ->capture_default_str();
  app.add_flag("--deterministic,!--no-deterministic", deterministic,
               "cuda: every run, policy and budget gives the same bits (default); without it, algorithms follow the "
               "memory that is free");
}

Rules StepArguments::rule_set() const {
  if (rules == "minimal") return Rules::minimal;
  if (rules == "superneurons") return Rules::superneurons;
  throw Error("unknown rules '{}'; they are minimal and superneurons", rules);
}

OptimizerOptions StepArguments::optimizer_options() const {
  OptimizerOptions options;
  if (optimizer == "sgd")
    options.kind = OptimizerKind::sgd;
  else if (optimizer == "momentum")
    options.kind = OptimizerKind::momentum;
  else if (optimizer == "nesterov")
    options.kind = OptimizerKind::nesterov;
  else if (optimizer == "adam")
    options.kind = OptimizerKind::adam;
  else if (optimizer == "adamw")
    options.kind = OptimizerKind::adamw;
  else
    throw Error("unknown optimizer '{}'; they are sgd, momentum, nesterov, adam and adamw", optimizer);
  if (!(momentum >= 0 && momentum < 1)) throw Error("--momentum {} is not in [0, 1)", momentum);
  if (!(weight_decay >= 0)) throw Error("--weight-decay {} is negative", weight_decay);
  if (!(clip >= 0)) throw Error("--clip {} is negative", clip);
  options.momentum = momentum;
  options.weight_decay = weight_decay;
  options.clip_norm = clip;
  return options;
}

std::string StepArguments::backend_name() const { return backend.empty() ? defaults().backend : backend; }

Precision StepArguments::precision_of_products() const { return precision_from_name(precision); }

std::unique_ptr<Backend> StepArguments::make(bool all_algorithms) const {
  constexpr int kMostThreads = 1024;
  if (threads < 0 || threads > kMostThreads)
    throw Error("--threads {} is not possible; give 1 to {}, or 0 for all cores", threads, kMostThreads);
  return make_backend(backend_name(), {.threads = threads,
                                       .precision = precision_of_products(),
                                       .deterministic = deterministic,
                                       .one_algorithm = deterministic && !all_algorithms});
}

StepOptions StepArguments::options(bool training) const {
  SessionOptions session;
  apply_to(session);
  return step_options({batch, training}, session);
}

void StepArguments::apply_to(SessionOptions& session) const {
  session.backend = backend_name();
  session.threads = threads;
  session.precision = precision_of_products();
  session.deterministic = deterministic;
  session.rules = rule_set();
  session.fuse = fuse;
  session.optimizer = optimizer_options();
}

std::string infeasible_text(const PlanResult& result, std::string_view what, const PlannerOptions& options,
                            std::string_view other_ways) {
  if (result.short_of != Tier::device) {
    const std::optional<Bytes>& budget = options.memory[result.short_of];
    const Bytes needed = result.floor[result.short_of];
    return fmt::format(
        "{} does not fit: what leaves the device takes {} bytes ({}) of {} memory, and there are {}; give it that, "
        "or more --memory",
        what, needed.count(), format_size(needed), tier_name(result.short_of), budget ? format_size(*budget) : "none");
  }
  return fmt::format("{} does not fit into {}: it needs {} bytes ({}), at {}; give it that{}", what,
                     options.memory[Tier::device] ? format_size(*options.memory[Tier::device]) : "memory",
                     result.floor[Tier::device].count(), format_size(result.floor[Tier::device]),
                     result.bottleneck_task, other_ways);
}

}  // namespace tide
