// Walks all kinds of layers and everything that one has: its description, its options in network files, its tasks
// on every backend of this binary, its record in the operator table, and its place in random networks. What
// a new kind lacks fails here by its name.
#include <set>

#include "backend/network_cases.h"
#include "backend/task_runner.h"
#include "formats/network_json.h"
#include "network/kind.h"
#include "support/random_network.h"

namespace tide::test {
namespace {

class KindTest : public testing::TestWithParam<LayerKind> {
 protected:
  static const KindDescription& description() { return description_of(GetParam()); }
  static const OperatorRecord& record() { return record_of(GetParam()); }
  static bool is_input() { return GetParam() == LayerKind::input; }
};

bool has_role(const std::vector<OperandRow>& rows, Role role, bool written) {
  return std::any_of(rows.begin(), rows.end(), [&](const OperandRow& row) {
    return row.role == role && (row.access != Access::read) == written;
  });
}

TEST_P(KindTest, HasACompleteDescription) {
  const KindDescription& kind = description();
  ASSERT_NE(kind.shapes, nullptr);
  EXPECT_TRUE(kind.most_inputs == kAnyNumber || kind.fewest_inputs <= kind.most_inputs);
  if (is_input() || kind.alias == Alias::always) return;
  EXPECT_TRUE(has_role(kind.forward.operands, Role::x, false));
  EXPECT_TRUE(has_role(kind.forward.operands, Role::y, true));
  const bool passes_always = kind.passes_gradient == When::always;
  EXPECT_TRUE(passes_always || has_role(kind.backward.operands, Role::dx, true) ||
              has_role(kind.backward_data.operands, Role::dx, true));
  EXPECT_EQ(kind.backward_data.operands.empty(), kind.backward_weights.operands.empty());
  // What is trained gets a gradient, and what is read later was saved.
  const bool trains = has_role(kind.backward.operands, Role::d_weight, true) ||
                      has_role(kind.backward_weights.operands, Role::d_weight, true);
  EXPECT_EQ(trains, has_role(kind.forward.operands, Role::weight, false));
  EXPECT_EQ(trains, kind.parameters != nullptr);
  bool saves = false;
  for (const Role role : {Role::mean, Role::inverse_deviation, Role::indices}) {
    const bool saved = has_role(kind.forward.operands, role, true);
    saves = saves || saved;
    EXPECT_EQ(saved, has_role(kind.backward.operands, role, false)) << role_name(role);
    EXPECT_TRUE(saved || !has_role(kind.replay, role, false)) << role_name(role);
  }
  EXPECT_EQ(saves, kind.saved != nullptr);
  EXPECT_TRUE(kind.product == Product::none || trains);
}

TEST_P(KindTest, HasARecordWithCases) {
  ASSERT_EQ(record().kind, GetParam());
  ASSERT_FALSE(record().cases.empty());
  // Forks come with the rules.
  const NetworkPtr network = record().cases.front().network();
  const Step step = build_step(network, step_options(record().cases.front().batch, Rules::superneurons));
  EXPECT_NE(std::find(step.layer_kinds.begin(), step.layer_kinds.end(), GetParam()), step.layer_kinds.end());
}

TEST_P(KindTest, ComesBackFromNetworkFiles) {
  for (const NetworkCase& entry : record().cases) {
    const NetworkPtr network = entry.network();
    const Network again = parse_network(format_network(*network), entry.name);
    EXPECT_EQ(again.fingerprint(), network->fingerprint()) << entry.name;
    ASSERT_EQ(again.layers.size(), network->layers.size()) << entry.name;
    for (std::size_t l = 0; l < again.layers.size(); ++l)
      EXPECT_TRUE(equal_options(again.layers[l].options, network->layers[l].options)) << network->layers[l].name;
  }
}

struct Changed {
  void operator()(std::int64_t& value) const { ++value; }
  void operator()(double& value) const { value += 1; }
  void operator()(bool& value) const { value = !value; }
  void operator()(Shape& value) const { value = value.with_extent(1, value.extent(1) + 1); }
  void operator()(Window& value) const { ++value.pad_right; }
  void operator()(std::vector<std::int64_t>& value) const { value.push_back(1); }
  template <NamedEnum Enum>
  void operator()(Enum& value) const {
    value = static_cast<Enum>(static_cast<int>(value) == 0 ? 1 : 0);
  }
};

TEST_P(KindTest, TellsItsOptionsApart) {
  std::set<std::string> names;
  const LayerOptions& defaults = description().defaults;
  std::visit(
      [&](auto options) {
        for_each_field(options, [&](const auto& field, auto& value) {
          EXPECT_TRUE(names.insert(field.name).second) << field.name;
          const auto before = value;
          Changed{}(value);
          EXPECT_FALSE(equal_options(options, defaults)) << field.name;
          value = before;
          EXPECT_TRUE(equal_options(options, defaults)) << field.name;
        });
      },
      defaults);
  // One that is kept in files and fingerprints is listed: a struct without fields has no size to speak of.
  std::visit(
      [&](const auto& options) { EXPECT_EQ(names.empty(), std::is_empty_v<std::remove_cvref_t<decltype(options)>>); },
      defaults);
}

// The kinds of tasks that a backend prepared for layers of this kind.
std::set<TaskKind> prepared(Backend& backend, LayerKind kind, const NetworkCase& entry, DataType activations) {
  std::set<TaskKind> found;
  for (const Rules rules : {Rules::minimal, Rules::superneurons})
    for (const bool training : {true, false}) {
      StepOptions options = step_options(entry.batch, rules, training);
      options.activations = activations;
      Step step = build_step(entry.network(), options);
      backend.annotate(step);
      for (std::size_t t = 0; t < step.tasks.size(); ++t) {
        if (step.layer_kind(step.tasks[t]) != kind) continue;
        for (std::size_t a = 0; a < step.algorithms_of(TaskId(t)).size(); ++a)
          EXPECT_TRUE(backend.prepare(step, TaskId(t), a)) << task_name(step, TaskId(t));
        found.insert(step.tasks[t].kind);
      }
    }
  return found;
}

TEST_P(KindTest, EveryBackendPreparesItsTasks) {
  const auto check = [&](Backend& backend, DataType activations) {
    SCOPED_TRACE(backend.name());
    const std::set<TaskKind> found = prepared(backend, GetParam(), record().cases.front(), activations);
    const KindDescription& kind = description();
    const auto makes = [&](TaskKind task, const TaskTable& table) {
      EXPECT_EQ(found.contains(task), !table.operands.empty()) << kind_name(task);
    };
    if (is_input() || kind.alias == Alias::always) return;
    makes(TaskKind::forward, kind.forward);
    makes(TaskKind::backward, kind.backward);
    makes(TaskKind::backward_data, kind.backward_data);
    makes(TaskKind::backward_weights, kind.backward_weights);
    EXPECT_EQ(found.contains(TaskKind::replay), kind.replays);
  };
  check(*make_backend("reference"), DataType::f32);
  const auto backend = tested_backend();
  if (backend == nullptr) GTEST_SKIP() << no_backend();
  check(*backend, DataType::f32);
  if (backend->name() == "cuda") check(*backend, DataType::bf16);
}

TEST_P(KindTest, GrowsInRandomNetworks) {
  // Forks come with the rules; a flatten is the value itself.
  if (GetParam() == LayerKind::fork || GetParam() == LayerKind::flatten) return;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const NetworkPtr network = testing_support::random_network(seed);
    for (const Layer& layer : network->layers)
      if (layer.kind == GetParam()) return;
  }
  ADD_FAILURE() << "no random network has a layer of kind " << kind_name(GetParam());
}

std::vector<LayerKind> all_kinds() {
  std::vector<LayerKind> kinds;
  for (int kind = 0; kind < kLayerKinds; ++kind) kinds.push_back(static_cast<LayerKind>(kind));
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kinds, KindTest, testing::ValuesIn(all_kinds()),
                         [](const auto& entry) { return std::string(kind_name(entry.param)); });

}  // namespace
}  // namespace tide::test
