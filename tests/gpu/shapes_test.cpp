// Shapes that the kernels of this backend tell apart: rows of whole packs and others, sums in one part and in several,
// lines along an axis that fit in a warp, a block or neither; and options that the operator table leaves alone.
#include "backend/compare_tasks.h"
#include "backend/network_cases.h"

namespace tide::test {
namespace {

class ShapesTest : public testing::TestWithParam<NetworkCase> {
 protected:
  void SetUp() override {
    if (tested_backend() == nullptr) GTEST_SKIP() << no_backend();
  }
  static StepOptions options(const NetworkCase& entry, DataType activations, bool training = true) {
    StepOptions options = step_options(entry.batch, Rules::minimal, training);
    options.activations = activations;
    return options;
  }
};

TEST_P(ShapesTest, MatchesReference) {
  for (const bool training : {true, false}) {
    Step step = build_step(GetParam().network(), options(GetParam(), DataType::f32, training));
    compare_all_tasks(*tested_backend(), step, GetParam().tolerance, is_first_sum);
  }
}

TEST_P(ShapesTest, MatchesReferenceInBf16) {
  static const std::unique_ptr<Backend> backend = make_backend("cuda", {.precision = Precision::bf16});
  for (const bool fuse : {false, true}) {
    StepOptions chosen = options(GetParam(), DataType::bf16);
    chosen.fuse = fuse;
    Step step = build_step(GetParam().network(), chosen);
    compare_all_tasks(*backend, step, GetParam().bf16_tolerance, is_first_sum);
  }
}

TEST_P(ShapesTest, ReplayGivesTheSameBits) {
  Step built = build_step(GetParam().network(), options(GetParam(), DataType::f32));
  tested_backend()->annotate(built);
  expect_equal_replays(*tested_backend(), std::make_shared<const Step>(std::move(built)));
}

using ShapeBody = std::function<Value(Builder&, Value)>;

void add_spread_cases(std::vector<NetworkCase>& cases) {
  for (const CombineFunction function : {CombineFunction::add, CombineFunction::multiply, CombineFunction::divide}) {
    const std::string name(enum_name(function));
    // What divides stays away from zero.
    const auto positive = [](Builder& net, Value x) {
      return net.activation(net.sigmoid(x), {ActivationFunction::affine, 1.5, 0.5});
    };
    for (const std::int64_t channels : {1, 8, 20, 96}) {
      const Shape sample{1, channels, 9, 7};
      cases.push_back({fmt::format("{}_gate_{}", name, channels), 3, sample, [=](Builder& net, Value x) {
                         return net.combine(net.tanh(x), positive(net, net.global_average_pool(x)), function);
                       }});
      cases.push_back({fmt::format("{}_gate_first_{}", name, channels), 2, sample, [=](Builder& net, Value x) {
                         return net.combine(net.global_average_pool(x), positive(net, x), function);
                       }});
      cases.push_back({fmt::format("{}_places_{}", name, channels), 2, sample, [=](Builder& net, Value x) {
                         const Value gate = positive(net, net.mean(x, {.axes = {1}, .keep = true}));
                         return net.combine(net.tanh(x), gate, function);
                       }});
      cases.push_back({fmt::format("{}_samples_{}", name, channels), 3, sample, [=](Builder& net, Value x) {
                         const Value gate = positive(net, net.mean(x, {.axes = {1, 2, 3}, .keep = true}));
                         return net.combine(net.tanh(x), gate, function);
                       }});
    }
    cases.push_back({name + "_frozen_gate", 2, {1, 16, 9, 7}, [=](Builder& net, Value x) {
                       const Value gate =
                           positive(net, net.freeze().fully_connected(Value{LayerId(0)}, {.channels = 16}));
                       return net.combine(net.freeze(false).tanh(x), gate, function);
                     }});
  }
  // Many places, which are summed in several parts.
  cases.push_back({"gate_in_parts", 2, {1, 16, 61, 67}, [=](Builder& net, Value x) {
                     const Value gate = net.sigmoid(net.global_average_pool(x));
                     return net.combine(net.tanh(x), gate, CombineFunction::multiply);
                   }});
  cases.push_back({"sample_gate_in_parts", 2, {1, 16, 61, 67}, [=](Builder& net, Value x) {
                     const Value gate = net.sigmoid(net.mean(x, {.axes = {1, 2, 3}, .keep = true}));
                     return net.combine(net.tanh(x), gate, CombineFunction::multiply);
                   }});
  const auto scaled = [](ScaleOptions options) {
    return [options](Builder& net, Value x) { return net.scale(net.tanh(x), options); };
  };
  for (const std::int64_t channels : {8, 20, 31})
    for (const std::int64_t batch : {1, 3}) {
      const auto add = [&](const char* name, const ScaleOptions& options) {
        cases.push_back(
            {fmt::format("scale_{}_{}_{}", name, channels, batch), batch, {1, channels, 9, 7}, scaled(options)});
      };
      add("channels", {.bias = true});
      add("all", {.axes = {1, 2, 3}, .bias = true});
      add("places", {.axes = {2, 3}, .bias = true});
      add("rows", {.axes = {2}, .weight = false, .bias = true});
      add("crosswise", {.axes = {1, 3}});
    }
  cases.push_back({"scale_in_parts", 3, {1, 16, 61, 67}, scaled({.bias = true})});
  cases.push_back({"scale_columns_in_parts", 3, {1, 16, 61, 67}, scaled({.axes = {3}, .bias = true})});
  cases.push_back({"scale_frozen", 2, {1, 16, 5, 7}, [=](Builder& net, Value x) {
                     const Value y = net.tanh(x), made = net.freeze().scale(y, {.bias = true});
                     return net.freeze(false).tanh(made);
                   }});
}

// Reshaped from one channel: the convolution that every case begins with is small then.
void add_axis_cases(std::vector<NetworkCase>& cases) {
  for (const auto& [name, count] :
       std::vector<std::pair<std::string, std::int64_t>>{{"two", 2}, {"warp", 33}, {"block", 300}, {"long", 700}})
    for (const std::size_t axis : {1U, 2U, 3U}) {
      const std::string of = fmt::format("{}_{}", name, axis);
      const Shape shape = Shape{1, 3, 1, 2}.with_extent(axis, count);
      const auto along = static_cast<std::int64_t>(axis);
      const auto add = [&](const std::string& kind, const ShapeBody& body) {
        cases.push_back({fmt::format("{}_{}", kind, of), 2, {1, 1, shape.per_sample(), 1}, [=](Builder& net, Value x) {
                           return body(net, net.tanh(net.reshape(x, shape)));
                         }});
      };
      add("softmax", [=](Builder& net, Value x) { return net.softmax(x, {along}); });
      add("l2_normalize", [=](Builder& net, Value x) { return net.l2_normalize(x, {along, 1e-6}); });
    }
  cases.push_back({"softmax_of_heads", 2, {1, 12, 9, 130}, [](Builder& net, Value x) { return net.softmax(x, {3}); }});
}

void add_place_cases(std::vector<NetworkCase>& cases) {
  for (const std::int64_t channels : {8, 20}) {
    const auto add = [&](const char* name, const Shape& sample, const ShapeBody& body) {
      cases.push_back({fmt::format("{}_{}", name, channels), 3, sample, body});
    };
    const Shape sample{1, channels, 9, 7};
    add("mean_in_parts", {1, channels, 61, 67}, [](Builder& net, Value x) {
      return net.mean(net.tanh(x), {.axes = {2, 3}});
    });
    add("mean_of_all_in_parts", {1, channels, 61, 67}, [](Builder& net, Value x) {
      return net.mean(net.tanh(x), {.axes = {1, 2, 3}});
    });
    add("mean_of_channels", sample, [](Builder& net, Value x) { return net.mean(net.tanh(x), {.axes = {1}}); });
    add("mean_of_rows", sample, [](Builder& net, Value x) { return net.mean(net.tanh(x), {.axes = {2}}); });
    add("adaptive", sample, [](Builder& net, Value x) { return net.adaptive_average_pool(x, {4, 5}); });
    add("adaptive_one", sample, [](Builder& net, Value x) { return net.adaptive_average_pool(x, {1, 1}); });
    add("average_round_up", sample, [](Builder& net, Value x) {
      return net.average_pool(x, {.window = window(3, 3, 2, 2, 1, 1, 1, 1), .round_up = true, .count_padding = true});
    });
    add("bilinear", sample, [](Builder& net, Value x) { return net.resize(x, {.height = 18, .width = 11}); });
    add("nearest", sample,
        [](Builder& net, Value x) { return net.resize(x, {.height = 18, .width = 14, .mode = ResizeMode::nearest}); });
    add("pad", sample, [](Builder& net, Value x) {
      return net.pad(x, {.before = {0, 1, -2}, .after = {0, 2, 3}, .value = 0.25});
    });
    add("reflect", sample, [](Builder& net, Value x) {
      return net.pad(x, {.before = {0, 4, 2}, .after = {0, 2, 3}, .mode = PadMode::reflect});
    });
    add("drop_path", sample, [](Builder& net, Value x) { return net.drop_path(net.tanh(x), {.rate = 0.4}); });
    add("drop_path_channels", sample,
        [](Builder& net, Value x) { return net.drop_path(net.tanh(x), {.rate = 0.4, .per_channel = true}); });
    add("shuffle", sample, [](Builder& net, Value x) { return net.channel_shuffle(net.tanh(x), 4); });
    add("transpose", sample, [](Builder& net, Value x) { return net.transpose(net.tanh(x), {0, 2, 1, 3}); });
    add("reshape_places", sample, [](Builder& net, Value x) {
      return net.reshape(net.tanh(x), {1, net.shape(x).channels(), 63});
    });
    add("reshape_heads", {1, 4 * channels, 9, 7}, [=](Builder& net, Value x) {
      return net.transpose(net.reshape(net.tanh(x), {1, 4, channels, 63}), {0, 1, 3, 2});
    });
  }
}

void add_loss_cases(std::vector<NetworkCase>& cases) {
  for (const std::int64_t classes : {2, 33, 300}) {
    const Shape sample{1, classes, 3, 5};
    const auto add = [&](const char* name, const ShapeBody& body) {
      cases.push_back({fmt::format("{}_{}", name, classes), 2, sample, [=](Builder& net, Value x) {
                         body(net, x);
                         return net.global_average_pool(net.tanh(x));
                       }});
    };
    add("soft_labels_of_places", [](Builder& net, Value x) {
      return net.softmax_cross_entropy(net.sigmoid(x),
                                       {.label_smoothing = 0.2, .weight = 0.5, .label_offset = 1, .soft = true});
    });
    add("counted_labels_of_places", [](Builder& net, Value x) {
      return net.softmax_cross_entropy(net.sigmoid(x), {.label_smoothing = 0.2, .label_offset = 1, .counted = true});
    });
    add("logistic_of_places",
        [](Builder& net, Value x) { return net.sigmoid_cross_entropy(x, {.weight = 0.5, .label_offset = 1}); });
    add("squares_of_places",
        [](Builder& net, Value x) { return net.mean_squared_error(net.tanh(x), {.weight = 0.5, .label_offset = 1}); });
  }
}

// Statistics that stay, under each function that a batch norm takes in.
void add_frozen_norms(std::vector<NetworkCase>& cases) {
  const BatchNormOptions frozen{.epsilon = 1e-3, .frozen_statistics = true};
  for (const std::int64_t channels : {7, 24}) {
    const Shape sample{1, channels, 9, 7};
    const auto add = [&](const std::string& name, const ShapeBody& body) {
      cases.push_back({fmt::format("frozen_{}_{}", name, channels), 3, sample, body});
    };
    add("norm", [=](Builder& net, Value x) { return net.batch_norm(net.tanh(x), frozen); });
    add("relu", [=](Builder& net, Value x) { return net.relu(net.batch_norm(net.tanh(x), frozen)); });
    add("add_relu", [=](Builder& net, Value x) { return net.relu(net.add({net.batch_norm(net.tanh(x), frozen), x})); });
    for (const ActivationFunction function :
         {ActivationFunction::clip, ActivationFunction::silu, ActivationFunction::hard_swish})
      add(std::string(enum_name(function)),
          [=](Builder& net, Value x) { return net.activation(net.batch_norm(net.tanh(x), frozen), function); });
  }
}

std::vector<NetworkCase> shape_cases() {
  std::vector<NetworkCase> cases;
  add_spread_cases(cases);
  add_axis_cases(cases);
  add_place_cases(cases);
  add_loss_cases(cases);
  add_frozen_norms(cases);
  // Sums of a loss's gradient over the channels are nothing but what rounding leaves of them.
  for (NetworkCase& entry : cases)
    entry.body = [body = entry.body](Builder& net, Value x) { return net.tanh(body(net, x)); };
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, ShapesTest, testing::ValuesIn(shape_cases()),
                         [](const auto& entry) { return entry.param.name; });

// Labels that are no class: no loss, no answer that counts, no gradient.
TEST(GpuLossTest, LeavesOutLabelsThatAreNoClass) {
  const auto backend = tested_backend();
  if (backend == nullptr) GTEST_SKIP() << no_backend();
  for (const bool counted : {false, true})
    for (const double smoothing : {0.0, 0.1}) {
      SCOPED_TRACE(fmt::format("{} {}", counted, smoothing));
      Builder net("gaps");
      const Value x = net.convolution(net.input({1, 3, 5, 7}), {.channels = 11});
      net.softmax_cross_entropy(x, {.label_smoothing = smoothing, .weight = 0.5, .counted = counted});
      Step built = build_step(std::make_shared<const Network>(std::move(net).build()), step_options(3));
      backend->annotate(built);
      const auto step = std::make_shared<const Step>(std::move(built));
      const StepState state = test_state(*step);
      ReferenceInterpreter reference(step);
      fill_inputs(*step, reference);
      TaskRunner runner(*backend, *step);
      for (std::size_t t = 0; t < step->tasks.size(); ++t) {
        const TaskId id(t);
        const bool is_loss = step->layer_kind(step->task(id)) == LayerKind::softmax_cross_entropy;
        const auto operands = step->operands_of(id);
        const auto labels = std::find_if(operands.begin(), operands.end(),
                                         [](const Operand& operand) { return operand.role == Role::labels; });
        if (is_loss && labels != operands.end()) {
          std::vector<double> values = reference.get(labels->tensor);
          const std::size_t row = values.size() / 3;
          constexpr std::array kLabels{-1.0, 3.0, 11.0, 10.0, 255.0, 0.0, -100.0};
          for (std::size_t i = 0; i < values.size(); ++i)
            if (i % row < 35) values[i] = kLabels[i % kLabels.size()];
          reference.set(labels->tensor, values);
        }
        const auto results = is_loss ? runner.run(id, reference, state) : std::map<std::size_t, std::vector<double>>{};
        reference.run_task(id, state);
        for (const auto& [position, values] : results)
          EXPECT_LE(relative_error(values, reference.get_logical(operands[position].tensor)), kTolerance)
              << role_name(operands[position].role);
        round_written(*step, id, reference);
      }
    }
}

}  // namespace
}  // namespace tide::test
