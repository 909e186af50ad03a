#include "plan/plan_json.h"

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "plan/checker.h"

namespace tide {
namespace {

using nlohmann::json;

constexpr int kVersion = 2;

// Tables are written as rows of plain values, with the column names once above them.
json table(std::initializer_list<const char*> columns) {
  return {{"columns", std::vector<std::string>(columns.begin(), columns.end())}, {"rows", json::array()}};
}

json write_extents(const Shape& shape) { return json(shape.extents()); }

json write_axes(const MemoryOrder& order) {
  json axes = json::array();
  for (std::size_t place = 0; place < order.rank(); ++place) axes.push_back(order.axis(place));
  return axes;
}

json write_step(const Step& step) {
  json layers = table({"name", "kind"});
  for (std::size_t l = 0; l < step.layer_names.size(); ++l)
    layers["rows"].push_back({step.layer_names[l], static_cast<int>(step.layer_kinds[l])});

  json tensors = table({"class", "type", "shape", "order", "storage", "layer", "parameter", "role", "index"});
  for (const Tensor& t : step.tensors)
    tensors["rows"].push_back({static_cast<int>(t.tensor_class), static_cast<int>(t.type), write_extents(t.shape),
                               write_axes(t.order), t.storage.value(), t.layer.value(), t.parameter.value(),
                               static_cast<int>(t.role), t.index});

  json storages = table({"bytes", "class", "persistent", "entry", "exit"});
  for (const Storage& s : step.storages)
    storages["rows"].push_back(
        {s.bytes.count(), static_cast<int>(s.tensor_class), s.persistent ? 1 : 0, s.entry.value(), s.exit.value()});

  json operands = table({"role", "access", "index", "tensor", "view"});
  for (const Operand& o : step.operands)
    operands["rows"].push_back(
        {static_cast<int>(o.role), static_cast<int>(o.access), o.index, o.tensor.value(), o.view.value()});

  json views = table({"shape", "order", "offset"});
  for (const View& v : step.views)
    views["rows"].push_back({write_extents(v.shape), write_axes(v.order), v.offset.count()});

  json tasks =
      table({"kind", "layer", "step", "first_operand", "operand_count", "algorithms", "in_place", "first_sample"});
  for (const Task& t : step.tasks) {
    json pairs = json::array();
    for (const InPlacePair p : t.in_place) pairs.push_back({p.source, p.target});
    tasks["rows"].push_back({static_cast<int>(t.kind), t.layer.value(), t.step, t.first_operand, t.operand_count,
                             t.algorithms, pairs, t.first_sample});
  }

  json sets = json::array();
  for (const auto& set : step.algorithm_sets) {
    json list = json::array();
    for (const Algorithm& a : set) list.push_back({{"name", a.name}, {"workspace", a.workspace.count()}});
    sets.push_back(std::move(list));
  }
  json replays = json::array();
  for (const TaskId id : step.replay_of) replays.push_back(id.value());
  const OptimizerOptions& o = step.options.optimizer;
  return {{"model", step.model},
          {"batch", step.options.batch},
          {"rules", static_cast<int>(step.options.rules)},
          {"training", step.options.training},
          {"fused", step.options.fuse},
          {"fuse_limit", step.options.fuse_limit.count()},
          {"activations", static_cast<int>(step.options.activations)},
          {"part", static_cast<int>(step.options.part)},
          {"sub_batch", step.options.sub_batch},
          {"optimizer",
           {{"kind", static_cast<int>(o.kind)},
            {"momentum", o.momentum},
            {"beta1", o.beta1},
            {"beta2", o.beta2},
            {"epsilon", o.epsilon},
            {"weight_decay", o.weight_decay},
            {"clip_norm", o.clip_norm}}},
          {"backend", step.backend},
          {"layer_steps", step.layer_steps},
          {"ordered_tasks", step.ordered_tasks},
          {"layers", layers},
          {"tensors", tensors},
          {"storages", storages},
          {"operands", operands},
          {"views", views},
          {"tasks", tasks},
          {"replay_of", replays},
          {"algorithm_sets", sets}};
}

// One row of a table, read column by column with every number checked.
class Row {
 public:
  explicit Row(const json& row) : row_(row) {
    if (!row.is_array()) throw Error("a table row is not a list");
  }
  std::int64_t number(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                      std::int64_t high = std::numeric_limits<std::int64_t>::max()) {
    const json& value = next();
    if (!value.is_number_integer()) throw Error("{} is not a whole number", value.dump());
    const auto result = value.get<std::int64_t>();
    if (result < low || result > high) throw Error("{} is outside {}..{}", result, low, high);
    return result;
  }
  template <typename Enum>
  Enum enumerated(Enum last) {
    return static_cast<Enum>(number(0, static_cast<int>(last)));
  }
  template <typename AnyId>
  AnyId id() {
    const std::int64_t value = number(-1, std::numeric_limits<std::int32_t>::max());
    return value < 0 ? AnyId() : AnyId(static_cast<std::size_t>(value));
  }
  std::int32_t int32(std::int32_t low = std::numeric_limits<std::int32_t>::min()) {
    return static_cast<std::int32_t>(number(low, std::numeric_limits<std::int32_t>::max()));
  }
  std::uint32_t uint32() { return static_cast<std::uint32_t>(number(0, std::numeric_limits<std::uint32_t>::max())); }
  std::int16_t int16() { return static_cast<std::int16_t>(number(-32768, 32767)); }
  Shape shape() {
    Row extents(next());
    std::vector<std::int64_t> numbers;
    while (extents.has_more()) numbers.push_back(extents.number(1));
    return Shape(numbers);
  }
  MemoryOrder order() {
    Row axes(next());
    std::vector<std::size_t> numbers;
    while (axes.has_more()) numbers.push_back(static_cast<std::size_t>(axes.number(0, Shape::kMostRank - 1)));
    return MemoryOrder(numbers);
  }
  [[nodiscard]] bool has_more() const { return column_ < row_.size(); }
  const json& next() {
    if (column_ >= row_.size()) throw Error("a table row ends early");
    return row_[column_++];
  }

 private:
  const json& row_;
  std::size_t column_ = 0;
};

const json& rows(const json& object, const char* name) { return object.at(name).at("rows"); }

Step read_step(const json& source) {
  Step step;
  step.model = source.at("model").get<std::string>();
  step.options.batch = source.at("batch").get<std::int64_t>();
  step.options.rules = source.at("rules").get<int>() == 0 ? Rules::minimal : Rules::superneurons;
  step.options.training = source.at("training").get<bool>();
  step.options.fuse = source.value("fused", false);
  step.options.fuse_limit = Bytes(std::max<std::int64_t>(source.value("fuse_limit", std::int64_t{0}), 0));
  step.options.activations =
      source.value("activations", 0) == static_cast<int>(DataType::bf16) ? DataType::bf16 : DataType::f32;
  const int part = source.value("part", 0);
  if (part < 0 || part >= kParts) throw Error("part {} is unknown", part);
  step.options.part = static_cast<Part>(part);
  step.options.sub_batch = std::max<std::int64_t>(source.value("sub_batch", std::int64_t{0}), 0);
  const json& optimizer = source.at("optimizer");
  OptimizerOptions& o = step.options.optimizer;
  const int kind = optimizer.at("kind").get<int>();
  if (kind < 0 || kind > static_cast<int>(OptimizerKind::adamw)) throw Error("optimizer {} is unknown", kind);
  o.kind = static_cast<OptimizerKind>(kind);
  o.momentum = optimizer.at("momentum").get<double>();
  o.beta1 = optimizer.at("beta1").get<double>();
  o.beta2 = optimizer.at("beta2").get<double>();
  o.epsilon = optimizer.at("epsilon").get<double>();
  o.weight_decay = optimizer.at("weight_decay").get<double>();
  o.clip_norm = optimizer.at("clip_norm").get<double>();
  step.backend = source.at("backend").get<std::string>();
  step.layer_steps = source.at("layer_steps").get<std::int32_t>();
  step.ordered_tasks = source.at("ordered_tasks").get<std::uint32_t>();
  if (step.layer_steps < 0) throw Error("layer_steps is {}", step.layer_steps);

  for (const json& item : rows(source, "layers")) {
    Row row(item);
    step.layer_names.push_back(row.next().get<std::string>());
    step.layer_kinds.push_back(row.enumerated(LayerKind::fork));
  }
  for (const json& item : rows(source, "tensors")) {
    Row row(item);
    Tensor t;
    t.tensor_class = row.enumerated(TensorClass::metric);
    t.type = row.enumerated(DataType::bf16);
    t.shape = row.shape();
    t.order = row.order();
    t.storage = row.id<StorageId>();
    t.layer = row.id<LayerId>();
    t.parameter = row.id<ParameterId>();
    t.role = row.enumerated(Role::norm);
    t.index = row.int32();
    step.tensors.push_back(t);
  }
  for (const json& item : rows(source, "storages")) {
    Row row(item);
    Storage s;
    s.bytes = Bytes(row.number(0));
    s.tensor_class = row.enumerated(TensorClass::metric);
    s.persistent = row.number(0, 1) == 1;
    s.entry = row.id<TensorId>();
    s.exit = row.id<TensorId>();
    step.storages.push_back(s);
  }
  for (const json& item : rows(source, "operands")) {
    Row row(item);
    Operand operand;
    operand.role = row.enumerated(Role::norm);
    operand.access = row.enumerated(Access::accumulate);
    operand.index = row.int16();
    operand.tensor = row.id<TensorId>();
    operand.view = row.id<ViewId>();
    step.operands.push_back(operand);
  }
  for (const json& item : rows(source, "views")) {
    Row row(item);
    View view;
    view.shape = row.shape();
    view.order = row.order();
    view.offset = Bytes(row.number(0, std::int64_t{1} << 60));
    step.views.push_back(view);
  }
  for (const json& item : rows(source, "tasks")) {
    Row row(item);
    Task t;
    t.kind = row.enumerated(TaskKind::update);
    t.layer = row.id<LayerId>();
    t.step = static_cast<std::int32_t>(row.number(0, 2 * std::int64_t{step.layer_steps}));
    t.first_operand = row.uint32();
    t.operand_count = row.uint32();
    t.algorithms = row.uint32();
    for (const json& pair : row.next()) {
      Row pair_row(pair);
      const std::int16_t from = pair_row.int16();
      t.in_place.push_back({from, pair_row.int16()});
    }
    if (row.has_more()) t.first_sample = row.number(0, step.options.batch - 1);
    step.tasks.push_back(std::move(t));
  }
  for (const json& set : source.at("algorithm_sets")) {
    std::vector<Algorithm> algorithms;
    for (const json& a : set)
      algorithms.push_back({a.at("name").get<std::string>(), Bytes(a.at("workspace").get<std::int64_t>())});
    step.algorithm_sets.push_back(std::move(algorithms));
  }
  for (const json& id : source.at("replay_of")) {
    const auto value = id.get<std::int64_t>();
    if (value >= static_cast<std::int64_t>(step.tasks.size())) throw Error("replay {} is not a task", value);
    step.replay_of.push_back(value < 0 ? TaskId() : TaskId(static_cast<std::size_t>(value)));
  }
  return step;
}

json write_phase(const Phase& phase) {
  json ops = table({"kind", "lane", "task", "algorithm", "workspace", "storage", "from", "to", "waits"});
  for (const Op& op : phase.ops)
    ops["rows"].push_back({static_cast<int>(op.kind), static_cast<int>(op.lane), op.task.value(), op.algorithm,
                           op.workspace.count(), op.storage.value(), static_cast<int>(op.from), static_cast<int>(op.to),
                           op.waits});
  json residencies = table({"storage", "tier", "first", "last", "address"});
  for (const Residency& r : phase.residencies)
    residencies["rows"].push_back({r.storage.value(), static_cast<int>(r.tier), r.first, r.last, r.address.count()});
  return {{"repeat", phase.repeat}, {"step", write_step(*phase.step)}, {"ops", ops}, {"residencies", residencies}};
}

Phase read_phase(const json& source) {
  Phase phase;
  phase.repeat = source.at("repeat").get<std::int32_t>();
  phase.step = std::make_shared<const Step>(read_step(source.at("step")));
  for (const json& item : rows(source, "ops")) {
    Row row(item);
    Op op;
    op.kind = row.enumerated(OpKind::copy);
    op.lane = row.enumerated(Lane::reduce);
    op.task = row.id<TaskId>();
    op.algorithm = row.uint32();
    op.workspace = Bytes(row.number(0, std::int64_t{1} << 60));
    op.storage = row.id<StorageId>();
    op.from = row.enumerated(Tier::disk);
    op.to = row.enumerated(Tier::disk);
    for (const json& wait : row.next()) op.waits.push_back(wait.get<std::int32_t>());
    phase.ops.push_back(std::move(op));
  }
  for (const json& item : rows(source, "residencies")) {
    Row row(item);
    Residency r;
    r.storage = row.id<StorageId>();
    r.tier = row.enumerated(Tier::disk);
    r.first = row.int32();
    r.last = row.int32();
    r.address = Bytes(row.number(0, std::int64_t{1} << 60));
    phase.residencies.push_back(r);
  }
  return phase;
}

json write_budget(const std::optional<Bytes>& bytes) { return bytes ? json(bytes->count()) : json(nullptr); }

std::optional<Bytes> read_budget(const json& value) {
  if (value.is_null()) return std::nullopt;
  return Bytes(value.get<std::int64_t>());
}

}  // namespace

std::string to_json(const Plan& plan) {
  json phases = json::array();
  for (const Phase& phase : plan.phases) phases.push_back(write_phase(phase));
  const json result{{"tidepool_plan", kVersion},
                    {"policy", plan.policy},
                    {"numerics", static_cast<int>(plan.numerics)},
                    {"memory", write_budget(plan.memory)},
                    {"host_memory", write_budget(plan.host_memory)},
                    {"disk_memory", write_budget(plan.disk_memory)},
                    {"fingerprint", plan.fingerprint},
                    {"phases", phases}};
  return result.dump();
}

Plan plan_from_json(const std::string& text) {
  try {
    const json source = json::parse(text);
    if (!source.is_object() || !source.contains("tidepool_plan")) throw Error("it is not a Tidepool plan");
    if (source.at("tidepool_plan").get<int>() != kVersion)
      throw Error("it has version {}, this program reads {}", source.at("tidepool_plan").dump(), kVersion);
    Plan plan;
    plan.policy = source.at("policy").get<std::string>();
    const int numerics = source.at("numerics").get<int>();
    if (numerics < 0 || numerics > 2) throw Error("numerics {} is unknown", numerics);
    plan.numerics = static_cast<Numerics>(numerics);
    plan.memory = read_budget(source.at("memory"));
    plan.host_memory = read_budget(source.at("host_memory"));
    plan.disk_memory = read_budget(source.at("disk_memory"));
    plan.fingerprint = source.at("fingerprint").get<std::string>();
    for (const json& phase : source.at("phases")) plan.phases.push_back(read_phase(phase));
    return plan;
  } catch (const json::exception& error) {
    throw Error("the plan is damaged: {}", error.what());
  }
}

void save_plan(const Plan& plan, const std::filesystem::path& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << to_json(plan) << '\n';
  file.close();
  if (!file) throw Error("{} could not be written; check the folder and the free space", path.string());
}

Plan load_plan(const std::filesystem::path& path) {
  constexpr std::uintmax_t kLargest = std::uintmax_t{4} << 30;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw Error("{} cannot be read: {}", path.string(), error.message());
  if (size > kLargest) throw Error("{} has {} bytes, which is too large for a plan", path.string(), size);
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) throw Error("{} cannot be read", path.string());
  try {
    Plan plan = plan_from_json(text);
    require_valid(plan);
    return plan;
  } catch (const Error& problem) {
    throw Error("{}: {}", path.string(), problem.what());
  }
}

}  // namespace tide
