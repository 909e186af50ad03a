// What exporters take to pieces is put together again, and computes the same.
#include <gtest/gtest.h>

#include "foreign/graph_maker.h"
#include "network/kind.h"

namespace tide::test {
namespace {

using Making = std::function<std::string(GraphMaker&)>;
using Element = double (*)(double);

// One layer, and this function of every element.
void expect_function(const Making& make, const std::string& kinds, ActivationFunction function, Element element) {
  GraphMaker maker;
  const ForeignGraph& graph = maker.ends(make(maker));
  const ImportedNetwork imported = imported_function(graph);
  EXPECT_EQ(kinds_of(*imported.network), kinds);
  EXPECT_EQ(imported.network->layers.back().as<ActivationOptions>().function, function);
  const std::vector<double> x = some_numbers(2 * 60), seen = result_of(graph, 2, x);
  ASSERT_EQ(seen.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(seen[i], element(x[i]), 1e-6 * (1 + std::abs(x[i])));
}

double gelu_exact(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double hard_sigmoid_exact(double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }

TEST(Patterns, Silu) {
  for (const bool first : {true, false})
    expect_function(
        [&](GraphMaker& m) {
          const std::string gate = m.node("Sigmoid", {"x"});
          return first ? m.node("Mul", {"x", gate}) : m.node("Mul", {gate, "x"});
        },
        "activation", ActivationFunction::silu, [](double x) { return x / (1 + std::exp(-x)); });
}

TEST(Patterns, HardSigmoidAndHardSwish) {
  const auto clipped = [](GraphMaker& m) {
    return m.node("Clip", {m.node("Add", {"x", m.number(3)}), m.number(0), m.number(6)});
  };
  expect_function(
      [&](GraphMaker& m) {
        return m.node("Div", {clipped(m), m.number(6)});
      },
      "activation", ActivationFunction::hard_sigmoid, hard_sigmoid_exact);
  const Element swish = [](double x) { return x * hard_sigmoid_exact(x); };
  expect_function(
      [&](GraphMaker& m) {
        return m.node("Mul", {"x", m.node("Div", {clipped(m), m.number(6)})});
      },
      "activation", ActivationFunction::hard_swish, swish);
  expect_function(
      [&](GraphMaker& m) {
        return m.node("Div", {m.node("Mul", {clipped(m), "x"}), m.number(6)});
      },
      "activation", ActivationFunction::hard_swish, swish);
  expect_function(
      [&](GraphMaker& m) {
        return m.node("Mul", {"x", m.node("HardSigmoid", {"x"}, {{"alpha", 1.0 / 6}, {"beta", 0.5}})});
      },
      "activation", ActivationFunction::hard_swish, swish);
}

TEST(Patterns, GeluByErf) {
  const auto one_and_erf = [](GraphMaker& m, bool divides) {
    const std::string scaled =
        divides ? m.node("Div", {"x", m.number(1.41421354F)}) : m.node("Mul", {"x", m.number(0.707106769F)});
    return m.node("Add", {m.node("Erf", {scaled}), m.number(1)});
  };
  expect_function(
      [&](GraphMaker& m) {
        return m.node("Mul", {m.node("Mul", {"x", one_and_erf(m, true)}), m.number(0.5F)});
      },
      "activation", ActivationFunction::gelu, gelu_exact);
  expect_function(
      [&](GraphMaker& m) {
        return m.node("Mul", {m.node("Mul", {"x", m.number(0.5F)}), one_and_erf(m, false)});
      },
      "activation", ActivationFunction::gelu, gelu_exact);
}

TEST(Patterns, GeluByTanh) {
  expect_function(
      [](GraphMaker& m) {
        const std::string cube = m.node("Mul", {m.node("Pow", {"x", m.number(3)}), m.number(0.044715F)});
        const std::string inner = m.node("Mul", {m.node("Add", {"x", cube}), m.number(0.797884583F)});
        const std::string sum = m.node("Add", {m.node("Tanh", {inner}), m.number(1)});
        return m.node("Mul", {m.node("Mul", {"x", m.number(0.5F)}), sum});
      },
      "activation", ActivationFunction::gelu_tanh,
      [](double x) {
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
      });
}

TEST(Patterns, Mish) {
  expect_function(
      [](GraphMaker& m) {
        return m.node("Mul", {"x", m.node("Tanh", {m.node("Softplus", {"x"})})});
      },
      "activation", ActivationFunction::mish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
}

TEST(Patterns, SoftplusWithAThreshold) {
  for (const float beta : {1.0F, 2.0F})
    expect_function(
        [&](GraphMaker& m) {
          const std::string scaled = beta == 1 ? "x" : m.node("Mul", {"x", m.number(beta)});
          std::string plus = m.node("Softplus", {scaled});
          if (beta != 1) plus = m.node("Div", {plus, m.number(beta)});
          return m.node("Where", {m.node("Greater", {scaled, m.number(20)}), "x", plus});
        },
        "activation", ActivationFunction::softplus,
        beta == 1 ? [](double x) { return std::log1p(std::exp(x)); }
                  : [](double x) { return std::log1p(std::exp(2 * x)) / 2; });
}

TEST(Patterns, FactorsThatCancel) {
  GraphMaker maker;
  std::string y = maker.node("Mul", {"x", maker.number(2)});
  y = maker.node("Relu", {maker.node("Div", {y, maker.number(2)})});
  EXPECT_EQ(kinds_of(*imported_function(maker.ends(y)).network), "relu");
}

TEST(Patterns, NormalizationToLengthOne) {
  for (const bool spread : {true, false}) {
    GraphMaker maker;
    std::string norm = maker.node("ReduceL2", {"x"}, {{"axes", Extents{1}}, {"keepdims", std::int64_t{1}}});
    norm = maker.node("Clip", {norm, maker.number(1e-12F)});
    if (spread) norm = maker.node("Expand", {norm, maker.node("Shape", {"x"})});
    const ForeignGraph& graph = maker.ends(maker.node("Div", {"x", norm}));
    const ImportedNetwork imported = imported_function(graph);
    EXPECT_EQ(kinds_of(*imported.network), "l2_normalize");
    EXPECT_NEAR(imported.network->layers.back().as<L2NormalizeOptions>().epsilon, 1e-12, 1e-18);
  }
}

// RandomUniformLike < keep, cast, times x, by keep.
std::string dropped(GraphMaker& m, const std::string& like, float keep) {
  const std::string random = m.node("RandomUniformLike", {like});
  const std::string mask = m.node("Cast", {m.node("Less", {random, m.number(keep)})}, {{"to", std::int64_t{1}}});
  return m.node("Div", {m.node("Mul", {"x", mask}), m.number(keep)});
}

TEST(Patterns, DropoutInPieces) {
  GraphMaker maker;
  const ImportedNetwork imported = imported_function(maker.ends(dropped(maker, "x", 0.75F)));
  EXPECT_EQ(kinds_of(*imported.network), "dropout");
  EXPECT_NEAR(imported.network->layers.back().as<DropoutOptions>().rate, 0.25, 1e-7);
}

TEST(Patterns, DropPathInPieces) {
  for (const bool per_channel : {true, false}) {
    GraphMaker maker;
    // torch.empty([batch, 1, 1, 1]), its shape from the batch
    const std::string batch =
        maker.node("Unsqueeze", {maker.node("Gather", {maker.node("Shape", {"x"}), maker.index(0)}), maker.whole({0})});
    const std::string shape = maker.node("Concat", {batch, maker.whole({per_channel ? 3 : 1}), maker.whole({1, 1})},
                                         {{"axis", std::int64_t{0}}});
    const std::string ones = maker.node("ConstantOfShape", {shape});
    const ImportedNetwork imported = imported_function(maker.ends(dropped(maker, ones, 0.8F)));
    EXPECT_EQ(kinds_of(*imported.network), "drop_path");
    const auto& options = imported.network->layers.back().as<DropPathOptions>();
    EXPECT_NEAR(options.rate, 0.2, 1e-7);
    EXPECT_EQ(options.per_channel, per_channel);
  }
}

TEST(Patterns, DropoutByBernoulli) {
  GraphMaker maker;
  const std::string share = maker.node("Expand", {maker.number(0.5F), maker.node("Shape", {"x"})});
  const std::string mask = maker.node("Div", {maker.node("Bernoulli", {share}), maker.number(0.5F)});
  const ImportedNetwork imported = imported_function(maker.ends(maker.node("Mul", {mask, "x"})));
  EXPECT_EQ(kinds_of(*imported.network), "dropout");
}

TEST(Patterns, ShuffleOfChannels) {
  GraphMaker maker({6, 4, 5});
  const std::string batch =
      maker.node("Unsqueeze", {maker.node("Gather", {maker.node("Shape", {"x"}), maker.index(0)}), maker.whole({0})});
  const auto view = [&](const std::string& x, const Extents& behind) {
    return maker.node("Reshape", {x, maker.node("Concat", {batch, maker.whole(behind)}, {{"axis", std::int64_t{0}}})});
  };
  const std::string parted = view("x", {2, 3, 4, 5});
  const std::string turned = maker.node("Transpose", {parted}, {{"perm", Extents{0, 2, 1, 3, 4}}});
  const ForeignGraph& graph = maker.ends(view(turned, {6, 4, 5}));
  EXPECT_EQ(kinds_of(*imported_function(graph).network), "channel_shuffle");
  const std::vector<double> x = some_numbers(2 * 120), seen = result_of(graph, 2, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t channel = i / 20 % 6, from = channel % 2 * 3 + channel / 2;
    EXPECT_EQ(seen[i], x[i / 120 * 120 + from * 20 + i % 20]);
  }
}

TEST(Patterns, PaddingBecomesAPartOfTheWindow) {
  const std::vector<float> weight(2 * 3 * 2 * 2, 0.5F);
  GraphMaker maker;
  const std::string padded = maker.node("Pad", {"x", maker.whole({0, 0, 1, 0, 0, 0, 0, 1})});
  const std::string y = maker.node("Conv", {padded, maker.floats(weight, {2, 3, 2, 2}, "weight")});
  const ImportedNetwork imported = imported_function(maker.ends(y));
  EXPECT_EQ(kinds_of(*imported.network), "convolution");
  const Window& window = imported.network->layers.back().as<ConvolutionOptions>().window;
  EXPECT_EQ(window.pad_top, 1);
  EXPECT_EQ(window.pad_right, 1);
  EXPECT_EQ(window.pad_left, 0);
}

TEST(Patterns, ABiasBehindAProductIsItsOwn) {
  const std::vector<float> weight(2 * 3, 0.5F);
  GraphMaker maker;
  const std::string product = maker.node("Conv", {"x", maker.floats(weight, {2, 3, 1, 1}, "weight")});
  const std::string y = maker.node("Add", {product, maker.floats({1, 2}, {2, 1, 1}, "bias")});
  const ImportedNetwork imported = imported_function(maker.ends(y));
  EXPECT_EQ(kinds_of(*imported.network), "convolution");
  EXPECT_EQ(imported.weights.size(), 2U);
  // Where others read the product, too, it stays by itself.
  GraphMaker read_twice;
  const std::string again = read_twice.node("Conv", {"x", read_twice.floats(weight, {2, 3, 1, 1}, "weight")});
  const std::string sum = read_twice.node("Add", {again, read_twice.floats({1, 2}, {2, 1, 1}, "bias")});
  const ForeignGraph& graph = read_twice.ends(read_twice.node("Mul", {again, sum}));
  EXPECT_EQ(kinds_of(*imported_function(graph).network), "convolution scale multiply");
}

TEST(Patterns, GroupNormInPieces) {
  GraphMaker maker({6, 4, 5});
  const std::string parted = maker.node("Reshape", {"x", maker.whole({0, 3, -1})});
  const std::string plain =
      maker.node("InstanceNormalization", {parted, maker.floats({1, 1, 1}, {3}), maker.floats({0, 0, 0}, {3})},
                 {{"epsilon", 1e-5}});
  const std::string back = maker.node("Reshape", {plain, maker.node("Shape", {"x"})});
  const std::vector<float> scales{1, 2, 3, 4, 5, 6}, shifts{6, 5, 4, 3, 2, 1};
  const std::string scaled = maker.node("Mul", {back, maker.floats(scales, {6, 1, 1}, "scale")});
  const ForeignGraph& graph = maker.ends(maker.node("Add", {scaled, maker.floats(shifts, {6, 1, 1}, "shift")}));
  const ImportedNetwork imported = imported_function(graph);
  EXPECT_EQ(kinds_of(*imported.network), "group_norm");
  EXPECT_EQ(imported.network->layers.back().as<GroupNormOptions>().groups, 3);
  const std::vector<double> x = some_numbers(2 * 120), seen = result_of(graph, 2, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t begin = i / 40 * 40, channel = i / 20 % 6;
    double mean = 0, square = 0;
    for (std::size_t j = 0; j < 40; ++j) mean += x[begin + j] / 40;
    for (std::size_t j = 0; j < 40; ++j) square += std::pow(x[begin + j] - mean, 2) / 40;
    EXPECT_NEAR(seen[i],
                (x[i] - mean) / std::sqrt(square + 1e-5) * static_cast<double>(scales[channel]) +
                    static_cast<double>(shifts[channel]),
                1e-6);
  }
}

TEST(Patterns, TransposesThatUndoEachOtherAreGone) {
  GraphMaker maker;
  std::string y = maker.node("Transpose", {"x"}, {{"perm", Extents{0, 2, 3, 1}}});
  y = maker.node("Transpose", {y}, {{"perm", Extents{0, 3, 1, 2}}});
  EXPECT_EQ(kinds_of(*imported_function(maker.ends(maker.node("Relu", {y}))).network), "relu");
}

TEST(Patterns, BatchNormInBothModes) {
  const auto norm = [](GraphMaker& m, const std::string& x, const std::string& name, std::int64_t training) {
    std::vector<std::string> inputs{x};
    for (const char* what : {".weight", ".bias", ".running_mean", ".running_var"})
      inputs.push_back(m.floats({1, 1, 1}, {3}, name + what));
    return m.node("BatchNormalization", inputs, {{"training_mode", training}, {"momentum", 0.9}},
                  training != 0 ? 3 : 1);
  };
  GraphMaker evaluation;
  const ImportedNetwork plain = imported_function(evaluation.ends(norm(evaluation, "x", "bn", 0)));
  EXPECT_FALSE(plain.network->layers.back().as<BatchNormOptions>().frozen_statistics);
  EXPECT_EQ(plain.network->layers.back().as<BatchNormOptions>().momentum, 0.1);
  EXPECT_NE(fmt::format("{}", fmt::join(plain.notes, " ")).find("written for evaluation"), std::string::npos);
  // Where one says that it trains, those that do not are frozen.
  GraphMaker mixed;
  const std::string first = norm(mixed, "x", "frozen", 0);
  const ImportedNetwork both = imported_function(mixed.ends(norm(mixed, first, "trained", 1)));
  EXPECT_TRUE(both.network->layers[1].as<BatchNormOptions>().frozen_statistics);
  EXPECT_FALSE(both.network->layers[2].as<BatchNormOptions>().frozen_statistics);
  EXPECT_TRUE(both.notes.empty());
}

TEST(Patterns, LayersThatShareTheirArraysShareTheirParameters) {
  const std::vector<float> weight(3 * 3, 0.5F);
  GraphMaker maker;
  maker.floats(weight, {3, 3, 1, 1}, "weight");
  const std::string once = maker.node("Conv", {"x", "weight"});
  const ImportedNetwork imported = imported_function(maker.ends(maker.node("Conv", {once, "weight"})));
  EXPECT_EQ(imported.network->parameters.size(), 1U);
  EXPECT_EQ(imported.network->layers[1].parameters[0].id, imported.network->layers[2].parameters[0].id);
}

}  // namespace
}  // namespace tide::test
