#include "plan/step_json.h"

#include "plan/json_rows.h"

namespace tide {
namespace {

using nlohmann::json;

// Overloaded names as values that templates can take.
constexpr auto kClassName = [](TensorClass c) { return class_name(c); };
constexpr auto kRoleName = [](Role r) { return role_name(r); };
constexpr auto kAccessName = [](Access a) { return access_name(a); };
constexpr auto kTypeName = [](DataType t) { return type_name(t); };
constexpr auto kTaskName = [](TaskKind k) { return kind_name(k); };
constexpr auto kLayerName = [](LayerKind k) { return kind_name(k); };

json write_layers(const Step& step) {
  json layers = json_table({"name", "kind"});
  for (std::size_t l = 0; l < step.layer_names.size(); ++l)
    layers["rows"].push_back({step.layer_names[l], kind_name(step.layer_kinds[l])});
  return layers;
}

void read_layers(const json& source, Step& step) {
  for (const json& item : json_rows(source, "layers")) {
    JsonRow row(item);
    step.layer_names.push_back(row.next().get<std::string>());
    step.layer_kinds.push_back(row.named<LayerKind>(kLayerName, kLayerKinds));
  }
}

json write_axes(const MemoryOrder& order) {
  json axes = json::array();
  for (std::size_t place = 0; place < order.rank(); ++place) axes.push_back(order.axis(place));
  return axes;
}

// As many numbers as a shape can have extents.
std::vector<std::int64_t> read_numbers(const json& source, std::int64_t low, std::int64_t high) {
  if (!source.is_array() || source.empty() || source.size() > Shape::kMostRank)
    throw Error("{} is not a list of one to {} numbers", source.dump(), Shape::kMostRank);
  std::vector<std::int64_t> numbers;
  JsonRow row(source);
  for (std::size_t axis = 0; axis < source.size(); ++axis) numbers.push_back(row.number(low, high));
  return numbers;
}

Shape read_shape(const json& source) {
  return Shape(read_numbers(source, 1, std::numeric_limits<std::int64_t>::max()));
}

MemoryOrder read_order(const json& source) {
  const std::vector<std::int64_t> axes = read_numbers(source, 0, Shape::kMostRank - 1);
  return MemoryOrder(std::vector<std::size_t>(axes.begin(), axes.end()));
}

json write_tensors(const Step& step) {
  json tensors = json_table({"class", "type", "shape", "order", "storage", "layer", "parameter", "role", "index"});
  for (const Tensor& t : step.tensors)
    tensors["rows"].push_back({class_name(t.tensor_class), type_name(t.type), t.shape.extents(), write_axes(t.order),
                               t.storage.value(), t.layer.value(), t.parameter.value(), role_name(t.role), t.index});
  return tensors;
}

void read_tensors(const json& source, Step& step) {
  for (const json& item : json_rows(source, "tensors")) {
    JsonRow row(item);
    Tensor t;
    t.tensor_class = row.named<TensorClass>(kClassName, kTensorClasses);
    t.type = row.named<DataType>(kTypeName, kDataTypes);
    t.shape = read_shape(row.next());
    t.order = read_order(row.next());
    t.storage = row.id<StorageId>();
    t.layer = row.id<LayerId>();
    t.parameter = row.id<ParameterId>();
    t.role = row.named<Role>(kRoleName, kRoles);
    t.index = row.int32();
    step.tensors.push_back(t);
  }
}

json write_storages(const Step& step) {
  json storages = json_table({"bytes", "class", "persistent", "entry", "exit"});
  for (const Storage& s : step.storages)
    storages["rows"].push_back(
        {s.bytes.count(), class_name(s.tensor_class), s.persistent ? 1 : 0, s.entry.value(), s.exit.value()});
  return storages;
}

void read_storages(const json& source, Step& step) {
  for (const json& item : json_rows(source, "storages")) {
    JsonRow row(item);
    Storage s;
    s.bytes = Bytes(row.number(0));
    s.tensor_class = row.named<TensorClass>(kClassName, kTensorClasses);
    s.persistent = row.number(0, 1) == 1;
    s.entry = row.id<TensorId>();
    s.exit = row.id<TensorId>();
    step.storages.push_back(s);
  }
}

json write_operands(const Step& step) {
  json operands = json_table({"role", "access", "index", "tensor", "view"});
  for (const Operand& o : step.operands)
    operands["rows"].push_back({role_name(o.role), access_name(o.access), o.index, o.tensor.value(), o.view.value()});
  return operands;
}

void read_operands(const json& source, Step& step) {
  for (const json& item : json_rows(source, "operands")) {
    JsonRow row(item);
    Operand operand;
    operand.role = row.named<Role>(kRoleName, kRoles);
    operand.access = row.named<Access>(kAccessName, kAccesses);
    operand.index = row.int16();
    operand.tensor = row.id<TensorId>();
    operand.view = row.id<ViewId>();
    step.operands.push_back(operand);
  }
}

json write_views(const Step& step) {
  json views = json_table({"shape", "order", "offset", "bucket", "parameter", "bytes", "own"});
  for (const View& v : step.views) {
    json row{v.shape.extents(), write_axes(v.order), v.offset.count()};
    if (v.bucket >= 0) row.insert(row.end(), {v.bucket, v.parameter.value(), v.bytes.count(), v.own ? 1 : 0});
    views["rows"].push_back(std::move(row));
  }
  return views;
}

void read_views(const json& source, Step& step) {
  for (const json& item : json_rows(source, "views")) {
    JsonRow row(item);
    View view;
    view.shape = read_shape(row.next());
    view.order = read_order(row.next());
    view.offset = Bytes(row.number(0, std::int64_t{1} << 60));
    if (item.size() > 3) {  // in a bucket
      view.bucket = static_cast<std::int32_t>(row.number(0, INT32_MAX));
      view.parameter = row.id<ParameterId>();
      view.bytes = Bytes(row.number(0, std::int64_t{1} << 60));
      view.own = row.number(0, 1) == 1;
    }
    step.views.push_back(view);
  }
}

json write_tasks(const Step& step) {
  json tasks =
      json_table({"kind", "layer", "step", "first_operand", "operand_count", "algorithms", "in_place", "first_sample"});
  for (const Task& t : step.tasks) {
    json pairs = json::array();
    for (const InPlacePair p : step.in_place_of(t)) pairs.push_back({p.source, p.target});
    tasks["rows"].push_back({kind_name(t.kind), t.layer.value(), t.step, t.first_operand, t.operand_count, t.algorithms,
                             pairs, t.first_sample});
  }
  return tasks;
}

// REQUIRES: the options and the number of layer steps were read.
void read_tasks(const json& source, Step& step) {
  for (const json& item : json_rows(source, "tasks")) {
    JsonRow row(item);
    Task t;
    t.kind = row.named<TaskKind>(kTaskName, kTaskKinds);
    t.layer = row.id<LayerId>();
    t.step = static_cast<std::int32_t>(row.number(0, 2 * std::int64_t{step.layer_steps}));
    t.first_operand = row.uint32();
    t.operand_count = row.uint32();
    t.algorithms = row.uint32();
    t.first_in_place = static_cast<std::uint32_t>(step.in_place.size());
    for (const json& pair : row.next()) {
      JsonRow pair_row(pair);
      const std::int16_t from = pair_row.int16();
      step.in_place.push_back({from, pair_row.int16()});
    }
    t.in_place_count = static_cast<std::uint32_t>(step.in_place.size()) - t.first_in_place;
    t.first_sample = row.number(0, step.options.batch - 1);
    step.tasks.push_back(t);
  }
  for (const json& id : source.at("replay_of")) {
    const auto value = id.get<std::int64_t>();
    if (value >= static_cast<std::int64_t>(step.tasks.size())) throw Error("replay {} is not a task", value);
    step.replay_of.push_back(value < 0 ? TaskId() : TaskId(static_cast<std::size_t>(value)));
  }
}

json write_algorithms(const Step& step) {
  json sets = json::array();
  for (const auto& set : step.algorithm_sets) {
    json list = json::array();
    for (const Algorithm& a : set) list.push_back({{"name", a.name}, {"workspace", a.workspace.count()}});
    sets.push_back(std::move(list));
  }
  return sets;
}

void read_algorithms(const json& source, Step& step) {
  for (const json& set : source.at("algorithm_sets")) {
    std::vector<Algorithm> algorithms;
    for (const json& a : set)
      algorithms.push_back({a.at("name").get<std::string>(), Bytes(a.at("workspace").get<std::int64_t>())});
    step.algorithm_sets.push_back(std::move(algorithms));
  }
}

json write_optimizer(const OptimizerOptions& o) {
  return {
      {"kind", optimizer_name(o.kind)}, {"momentum", o.momentum},         {"beta1", o.beta1},        {"beta2", o.beta2},
      {"epsilon", o.epsilon},           {"weight_decay", o.weight_decay}, {"clip_norm", o.clip_norm}};
}

OptimizerOptions read_optimizer(const json& source) {
  OptimizerOptions o;
  o.kind = enum_from_json<OptimizerKind>(source.at("kind"), optimizer_name, kOptimizerKinds);
  o.momentum = source.at("momentum").get<double>();
  o.beta1 = source.at("beta1").get<double>();
  o.beta2 = source.at("beta2").get<double>();
  o.epsilon = source.at("epsilon").get<double>();
  o.weight_decay = source.at("weight_decay").get<double>();
  o.clip_norm = source.at("clip_norm").get<double>();
  return o;
}

std::int64_t at_least(const json& source, const char* name, std::int64_t least) {
  const auto number = source.at(name).get<std::int64_t>();
  if (number < least) throw Error("{} is {}", name, number);
  return number;
}

StepOptions read_options(const json& source) {
  StepOptions options;
  options.batch = at_least(source, "batch", 1);
  options.rules = enum_from_json<Rules>(source.at("rules"), rules_name, kRules);
  options.training = source.at("training").get<bool>();
  options.fuse = source.at("fused").get<bool>();
  options.fuse_limit = Bytes(at_least(source, "fuse_limit", 0));
  options.activations = enum_from_json<DataType>(source.at("activations"), kTypeName, kDataTypes);
  options.part = enum_from_json<Part>(source.at("part"), part_name, kParts);
  options.sub_batch = at_least(source, "sub_batch", 0);
  options.optimizer = read_optimizer(source.at("optimizer"));
  if (const auto ranks = source.find("ranks"); ranks != source.end()) {
    options.ranks.count = at_least(*ranks, "count", 1);
    options.ranks.bucket = Bytes(at_least(*ranks, "bucket", 1));
    options.ranks.late_updates = ranks->at("late_updates").get<bool>();
    options.ranks.parts = at_least(*ranks, "parts", 0);
    options.ranks.shard = enum_from_json<Shard>(ranks->at("shard"), shard_name, kShards);
    options.ranks.least_to_shard = Bytes(at_least(*ranks, "least_to_shard", 0));
  }
  return options;
}

}  // namespace

json step_to_json(const Step& step) {
  json replays = json::array();
  for (const TaskId id : step.replay_of) replays.push_back(id.value());
  const StepOptions& options = step.options;
  json result{{"model", step.model},
              {"batch", options.batch},
              {"rules", rules_name(options.rules)},
              {"training", options.training},
              {"fused", options.fuse},
              {"fuse_limit", options.fuse_limit.count()},
              {"activations", type_name(options.activations)},
              {"part", part_name(options.part)},
              {"sub_batch", options.sub_batch},
              {"optimizer", write_optimizer(options.optimizer)},
              {"backend", step.backend},
              {"layer_steps", step.layer_steps},
              {"ordered_tasks", step.ordered_tasks},
              {"layers", write_layers(step)},
              {"tensors", write_tensors(step)},
              {"storages", write_storages(step)},
              {"operands", write_operands(step)},
              {"views", write_views(step)},
              {"tasks", write_tasks(step)},
              {"replay_of", replays},
              {"algorithm_sets", write_algorithms(step)}};
  if (options.ranks.count > 1 || options.ranks.parts > 0)
    result["ranks"] = {{"count", options.ranks.count},
                       {"bucket", options.ranks.bucket.count()},
                       {"late_updates", options.ranks.late_updates},
                       {"parts", options.ranks.parts},
                       {"shard", shard_name(options.ranks.shard)},
                       {"least_to_shard", options.ranks.least_to_shard.count()}};
  return result;
}

Step step_from_json(const json& source) {
  Step step;
  step.model = source.at("model").get<std::string>();
  step.options = read_options(source);
  step.backend = source.at("backend").get<std::string>();
  step.layer_steps = source.at("layer_steps").get<std::int32_t>();
  step.ordered_tasks = source.at("ordered_tasks").get<std::uint32_t>();
  if (step.layer_steps < 0) throw Error("layer_steps is {}", step.layer_steps);
  read_layers(source, step);
  read_tensors(source, step);
  read_storages(source, step);
  read_operands(source, step);
  read_views(source, step);
  read_algorithms(source, step);
  read_tasks(source, step);
  return step;
}

}  // namespace tide
