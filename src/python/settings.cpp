#include "settings.h"

#include <fstream>

namespace tide::python {
namespace {

std::string type_text(nb::handle value) { return nb::cast<std::string>(nb::str(value.type().attr("__name__"))); }

// One word and its value, read as a type.
struct Given {
  std::string word;
  nb::object value;

  template <typename Type>
  [[nodiscard]] Type as(const char* wanted) const {
    Type result{};
    if (!nb::try_cast(value, result)) throw Error("{}={}: is a {}, not {}", word, repr(), type_text(value), wanted);
    return result;
  }
  [[nodiscard]] std::string text() const { return as<std::string>("a text"); }
  [[nodiscard]] bool flag() const { return as<bool>("True or False"); }
  [[nodiscard]] std::int64_t whole() const { return as<std::int64_t>("a whole number"); }
  [[nodiscard]] double number() const { return as<double>("a number"); }
  [[nodiscard]] double share(double below) const {
    const double result = number();
    if (!(result >= 0 && result < below)) throw Error("{}={} is not in [0, {})", word, result, below);
    return result;
  }
  [[nodiscard]] double not_negative() const {
    const double result = number();
    if (!(result >= 0)) throw Error("{}={} is negative", word, result);
    return result;
  }
  // Bytes as a number, or "12GiB".
  [[nodiscard]] std::string size() const {
    if (nb::isinstance<nb::str>(value)) return text();
    const std::int64_t bytes = as<std::int64_t>("a size, such as '12GiB' or a number of bytes");
    if (bytes < 0) throw Error("{}={} is negative", word, bytes);
    return fmt::format("{}", bytes);
  }

 private:
  [[nodiscard]] std::string repr() const { return nb::cast<std::string>(nb::repr(value)); }
};

OptimizerKind optimizer_from_name(const std::string& name) {
  for (std::size_t k = 0; k < kOptimizerKinds; ++k)
    if (optimizer_name(static_cast<OptimizerKind>(k)) == name) return static_cast<OptimizerKind>(k);
  throw Error("unknown optimizer '{}'; they are sgd, momentum, nesterov, adam and adamw", name);
}

Rules rules_from_text(const std::string& name) {
  for (std::size_t k = 0; k < kRules; ++k)
    if (rules_name(static_cast<Rules>(k)) == name) return static_cast<Rules>(k);
  throw Error("unknown rules '{}'; they are minimal and superneurons", name);
}

struct BatchWords {
  std::string allow{numerics_name(allowed_by(PlannerOptions{}.batch))}, batch_norm = "plain";
  std::int64_t sub_batch = 0;

  [[nodiscard]] Batch batch() const {
    if (batch_norm != "plain" && batch_norm != "exact")
      throw Error("batch_norm is plain or exact, not '{}'", batch_norm);
    if (sub_batch < 0) throw Error("sub_batch={} is negative", sub_batch);
    const Numerics allowed = numerics_from_name(allow);
    if (allowed == Numerics::identical && sub_batch == 0) return WholeBatch{};
    return SubBatches{.allowed = allowed, .exact_batch_norm = batch_norm == "exact", .samples = sub_batch};
  }
};

bool read_optimizer_word(const Given& given, OptimizerOptions& optimizer) {
  const std::string& word = given.word;
  if (word == "optimizer")
    optimizer.kind = optimizer_from_name(given.text());
  else if (word == "momentum")
    optimizer.momentum = given.share(1);
  else if (word == "beta1")
    optimizer.beta1 = given.share(1);
  else if (word == "beta2")
    optimizer.beta2 = given.share(1);
  else if (word == "epsilon")
    optimizer.epsilon = given.not_negative();
  else if (word == "weight_decay")
    optimizer.weight_decay = given.not_negative();
  else if (word == "clip")
    optimizer.clip_norm = given.not_negative();
  else
    return false;
  return true;
}

bool read_session_word(const Given& given, SessionOptions& session, BatchWords& batch) {
  constexpr std::int64_t kMostThreads = 1024;
  const std::string& word = given.word;
  if (word == "backend") {
    session.backend = given.text();
  } else if (word == "threads") {
    const std::int64_t threads = given.whole();
    if (threads < 0 || threads > kMostThreads)
      throw Error("threads={} is not possible; give 1 to {}, or 0 for all cores", threads, kMostThreads);
    session.threads = static_cast<int>(threads);
  } else if (word == "precision") {
    session.precision = precision_from_name(given.text());
  } else if (word == "deterministic") {
    session.deterministic = given.flag();
  } else if (word == "policy") {
    session.policy = given.text();
  } else if (word == "parameters") {
    session.planner.parameters = parameters_from_name(given.text());
  } else if (word == "profile") {
    session.profile = given.text();
  } else if (word == "rules") {
    session.rules = rules_from_text(given.text());
  } else if (word == "fuse") {
    session.fuse = given.flag();
  } else if (word == "seed") {
    session.seed = given.as<std::uint64_t>("a whole number from 0 on");
  } else if (word == "guard") {
    session.executor.guard = given.flag();
  } else if (word == "allow") {
    batch.allow = given.text();
  } else if (word == "batch_norm") {
    batch.batch_norm = given.text();
  } else if (word == "sub_batch") {
    batch.sub_batch = given.whole();
  } else {
    return false;
  }
  return true;
}

Bytes free_host_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::int64_t kilobytes = 0;
  while (file >> name >> kilobytes >> unit)
    if (name == "MemAvailable:") return Bytes(checked_multiply(kilobytes, 1024));
  throw Error("memory='auto' cannot tell how much memory is free here; give a size instead");
}

Bytes device_budget(const std::string& text, const Target& target) {
  if (text == "device") {
    if (target.sheet() == nullptr) throw Error("memory='device' needs a device=; tidepool.devices() lists them");
    if (target.sheet()->memory().is_zero())
      throw Error("the memory of {} is not known; give memory= a size", target.sheet()->name);
    return target.sheet()->memory();
  }
  if (text != "auto") return parse_size(text);
  const std::optional<Bytes> own = target.backend() != nullptr ? target.backend()->free_memory() : std::nullopt;
  return Bytes((own ? *own : free_host_memory()).count() / 10 * 9);
}

}  // namespace

std::unique_ptr<Target> Settings::target() {
  std::unique_ptr<Target> result;
  if (!device.empty()) {
    if (!session.profile.empty()) throw Error("device= and profile= do not go together: give one of them");
    result = std::make_unique<Target>(find_device(device), link_bytes_per_second);
  } else {
    session.executor.link_bytes_per_second = link_bytes_per_second;
    result = make_target(session);
  }
  PerTier<std::optional<Bytes>>& budgets = session.planner.memory;
  // Once: what is free now counts.
  if (budgets_are_known_) return result;
  budgets_are_known_ = true;
  if (!memory_.empty()) budgets[Tier::device] = device_budget(memory_, *result);
  if (!host_memory_.empty())
    budgets[Tier::host] =
        host_memory_ == "auto" ? Bytes(free_host_memory().count() / 10 * 9) : parse_size(host_memory_);
  if (!disk_memory_.empty()) budgets[Tier::disk] = parse_size(disk_memory_);
  return result;
}

Settings settings_of(const nb::dict& given) {
  Settings settings;
  BatchWords batch;
  for (const auto& [key, value] : given) {
    if (value.is_none()) continue;
    const Given one{nb::cast<std::string>(key), nb::borrow(value)};
    if (read_optimizer_word(one, settings.session.optimizer)) continue;
    if (read_session_word(one, settings.session, batch)) continue;
    if (one.word == "memory")
      settings.memory_ = one.size();
    else if (one.word == "host_memory")
      settings.host_memory_ = one.size();
    else if (one.word == "disk_memory")
      settings.disk_memory_ = one.size();
    else if (one.word == "device")
      settings.device = one.text();
    else if (one.word == "link")
      settings.link_bytes_per_second = one.not_negative();
    else
      throw Error(
          "there is no option '{}'; there are memory, host_memory, disk_memory, policy, parameters, allow, batch_norm, "
          "sub_batch, device, backend, threads, precision, deterministic, profile, link, rules, fuse, seed, guard, "
          "optimizer, momentum, beta1, beta2, epsilon, weight_decay and clip",
          one.word);
  }
  settings.session.planner.batch = batch.batch();
  return settings;
}

}  // namespace tide::python
