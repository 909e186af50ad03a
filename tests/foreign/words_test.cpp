// What each word computes, against the function that ONNX says it is.
#include <gtest/gtest.h>

#include "foreign/graph_maker.h"
#include "support/error_of.h"

namespace tide::test {
namespace {

using Function = double (*)(double);

struct WordOfOne {
  std::string name, op;
  Attributes attributes;
  Function function;
  friend std::ostream& operator<<(std::ostream& out, const WordOfOne& word) { return out << word.name; }
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double softplus_of(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }
double gelu_of(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double elu_of(double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x); }

std::vector<WordOfOne> words_of_one() {
  return {
      {"relu", "Relu", {}, [](double x) { return std::max(x, 0.0); }},
      {"sigmoid", "Sigmoid", {}, sigmoid_of},
      {"tanh", "Tanh", {}, [](double x) { return std::tanh(x); }},
      {"leaky", "LeakyRelu", {}, [](double x) { return x > 0 ? x : 0.01 * x; }},
      {"leaky_alpha", "LeakyRelu", {{"alpha", 0.25}}, [](double x) { return x > 0 ? x : 0.25 * x; }},
      {"elu", "Elu", {}, [](double x) { return elu_of(x, 1); }},
      {"elu_alpha", "Elu", {{"alpha", 0.5}}, [](double x) { return elu_of(x, 0.5); }},
      {"selu", "Selu", {}, [](double x) { return 1.05070102214813232 * elu_of(x, 1.67326319217681885); }},
      {"celu", "Celu", {{"alpha", 2.0}}, [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); }},
      {"swish", "Swish", {{"alpha", 2.0}}, [](double x) { return x * sigmoid_of(2 * x); }},
      {"silu", "tidepool.Silu", {}, [](double x) { return x * sigmoid_of(x); }},
      {"hard_sigmoid", "HardSigmoid", {}, [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
      {"hard_swish", "HardSwish", {}, [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"mish", "Mish", {}, [](double x) { return x * std::tanh(softplus_of(x)); }},
      {"softplus", "Softplus", {}, softplus_of},
      {"gelu", "Gelu", {}, gelu_of},
      {"gelu_tanh",
       "Gelu",
       {{"approximate", std::string("tanh")}},
       [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }},
      {"exp", "Exp", {}, [](double x) { return std::exp(x); }},
      {"abs", "Abs", {}, [](double x) { return std::abs(x); }},
      {"negative", "Neg", {}, [](double x) { return -x; }},
      {"clip_of_old_operators",
       "Clip",
       {{"min", -0.5}, {"max", 0.75}},
       [](double x) { return std::clamp(x, -0.5, 0.75); }},
      {"identity", "Identity", {}, [](double x) { return x; }},
      {"cast", "Cast", {{"to", std::int64_t{1}}}, [](double x) { return x; }},
  };
}

class WordsOfOne : public testing::TestWithParam<WordOfOne> {};

TEST_P(WordsOfOne, AreTheirFunction) {
  GraphMaker maker;
  const std::string y = maker.node(GetParam().op, {"x"}, GetParam().attributes);
  // An identity alone would be no layer.
  const std::vector<double> x = some_numbers(2 * 60);
  const std::vector<double> seen = result_of(maker.ends(maker.node("Add", {y, y})), 2, x);
  ASSERT_EQ(seen.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double wanted = 2 * GetParam().function(x[i]);
    EXPECT_NEAR(seen[i], wanted, 1e-9 * std::max(1.0, std::abs(wanted))) << "of " << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(All, WordsOfOne, testing::ValuesIn(words_of_one()),
                         [](const auto& entry) { return entry.param.name; });

// y[i] for each element of two samples of 3x4x5.
void expect_elements(ForeignGraph& graph, const std::function<double(double)>& function) {
  const std::vector<double> x = some_numbers(2 * 60);
  const std::vector<double> seen = result_of(graph, 2, x);
  ASSERT_EQ(seen.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(seen[i], function(x[i]), 1e-6 * (1 + std::abs(seen[i])));
}

TEST(Words, WithConstants) {
  const auto make = [](const char* op, bool behind, float constant, const std::function<double(double)>& function) {
    GraphMaker maker;
    const std::string c = maker.number(constant);
    const std::string y = behind ? maker.node(op, {"x", c}) : maker.node(op, {c, "x"});
    expect_elements(maker.ends(y), function);
  };
  make("Add", true, 0.5F, [](double x) { return x + 0.5; });
  make("Add", false, 0.5F, [](double x) { return 0.5 + x; });
  make("Sub", true, 0.5F, [](double x) { return x - 0.5; });
  make("Sub", false, 0.5F, [](double x) { return 0.5 - x; });
  make("Mul", true, -3, [](double x) { return -3 * x; });
  make("Div", true, 4, [](double x) { return x / 4; });
  make("Pow", true, 2, [](double x) { return x * x; });
  make("Max", true, 0.25F, [](double x) { return std::max(x, 0.25); });
  make("Min", false, 0.25F, [](double x) { return std::min(x, 0.25); });
  make("Max", true, 0, [](double x) { return std::max(x, 0.0); });
  make("PRelu", true, 0.125F, [](double x) { return x > 0 ? x : 0.125 * x; });
}

TEST(Words, ClipTakesItsBoundsFromConstants) {
  for (const bool low : {true, false})
    for (const bool high : {true, false}) {
      GraphMaker maker;
      const std::string least = low ? maker.number(-0.5F) : "", most = high ? maker.number(1.5F) : "";
      expect_elements(maker.ends(maker.node("Clip", {"x", least, most})),
                      [=](double x) { return std::clamp(x, low ? -0.5 : -1e9, high ? 1.5 : 1e9); });
    }
}

// Of arrays that are spread over the value, from the back as they are broadcast.
TEST(Words, WithArrays) {
  const std::vector<float> three{0.5F, -2, 4};
  const std::vector<double> x = some_numbers(2 * 60);
  for (const std::string op : {"Add", "Sub", "Mul", "Div"})
    for (const bool behind : {true, false})
      for (const bool named : {true, false}) {
        if (op == "Div" && !behind) continue;
        GraphMaker maker;
        const std::string c = maker.floats(three, {3, 1, 1}, named ? "array" : "");
        const std::string y = behind ? maker.node(op, {"x", c}) : maker.node(op, {c, "x"});
        const std::vector<double> seen = result_of(maker.ends(y), 2, x);
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double array = three[i / 20 % 3], a = behind ? x[i] : array, b = behind ? array : x[i];
          const double wanted = op == "Add" ? a + b : op == "Sub" ? a - b : op == "Mul" ? a * b : a / b;
          EXPECT_NEAR(seen[i], wanted, 1e-6) << op << behind << named;
        }
      }
}

TEST(Words, OfTwoValuesThatSpreadOverEachOther) {
  GraphMaker maker;
  const std::string gate = maker.node("GlobalAveragePool", {"x"});
  const std::vector<double> x = some_numbers(2 * 60);
  const std::vector<double> seen = result_of(maker.ends(maker.node("Sub", {"x", gate})), 2, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    double mean = 0;
    for (std::size_t p = 0; p < 20; ++p) mean += x[i / 20 * 20 + p] / 20;
    EXPECT_NEAR(seen[i], x[i] - mean, 1e-12);
  }
}

// Where each element of a result comes from; -1: nowhere, a 0.
using Source = std::function<std::int64_t(const Extents&)>;

void expect_places(ForeignGraph& graph, const Extents& result, const Source& source) {
  const std::vector<double> x = some_numbers(2 * 60);
  const std::vector<double> seen = result_of(graph, 2, x);
  std::int64_t count = 1;
  for (const std::int64_t extent : result) count *= extent;
  ASSERT_EQ(static_cast<std::int64_t>(seen.size()), 2 * count);
  for (std::int64_t sample = 0; sample < 2; ++sample)
    for (std::int64_t i = 0; i < count; ++i) {
      Extents at(result.size());
      std::int64_t rest = i;
      for (std::size_t axis = result.size(); axis-- > 0; rest /= result[axis]) at[axis] = rest % result[axis];
      const std::int64_t from = source(at);
      EXPECT_EQ(seen[static_cast<std::size_t>(sample * count + i)],
                from < 0 ? 0 : x[static_cast<std::size_t>(sample * 60 + from)])
          << fmt::format("{}", fmt::join(at, ", "));
    }
}

std::int64_t place(std::int64_t c, std::int64_t h, std::int64_t w) { return (c * 4 + h) * 5 + w; }

TEST(Words, Slice) {
  GraphMaker maker;
  const std::string y = maker.node("Slice", {"x", maker.whole({1, -3}), maker.whole({100, -1}), maker.whole({2, -1})});
  expect_places(maker.ends(y), {3, 3, 2}, [](const Extents& at) { return place(at[0], at[1] + 1, at[2] + 2); });
}

TEST(Words, SliceByAttributes) {
  GraphMaker maker;
  maker.graph.opset = 9;
  const std::string y =
      maker.node("Slice", {"x"}, {{"starts", Extents{0, 1}}, {"ends", Extents{1LL << 40, 3}}, {"axes", Extents{0, 1}}});
  expect_places(maker.ends(y), {2, 4, 5}, [](const Extents& at) { return place(at[0] + 1, at[1], at[2]); });
}

TEST(Words, Gather) {
  GraphMaker maker;
  const std::string y = maker.node("Gather", {"x", maker.index(-1)}, {{"axis", std::int64_t{2}}});
  expect_places(maker.ends(y), {3, 5}, [](const Extents& at) { return place(at[0], 3, at[1]); });
}

TEST(Words, SplitAlongAnyAxis) {
  for (const std::int64_t axis : {1, 2, -1}) {
    GraphMaker maker;
    const std::int64_t rank_axis = axis < 0 ? 3 : axis, extent = rank_axis == 1 ? 3 : rank_axis == 2 ? 4 : 5;
    maker.node("Split", {"x", maker.whole({1, extent - 1})}, {{"axis", axis}}, 2);
    Extents result{3, 4, 5};
    result[static_cast<std::size_t>(rank_axis - 1)] = extent - 1;
    expect_places(maker.ends(maker.graph.nodes.back().outputs[1]), result, [=](const Extents& at) {
      return place(at[0] + (rank_axis == 1), at[1] + (rank_axis == 2), at[2] + (rank_axis == 3));
    });
  }
}

TEST(Words, SplitToSequenceAndSequenceAt) {
  GraphMaker maker;
  const std::string parts = maker.node("SplitToSequence", {"x", maker.index(2)}, {{"axis", std::int64_t{3}}});
  const std::string y = maker.node("SequenceAt", {parts, maker.index(-1)});
  expect_places(maker.ends(y), {3, 4, 1}, [](const Extents& at) { return place(at[0], at[1], 4); });
}

TEST(Words, ConcatAlongAnyAxis) {
  for (const std::int64_t axis : {1, 2, 3}) {
    GraphMaker maker;
    Extents result{3, 4, 5};
    const auto i = static_cast<std::size_t>(axis - 1);
    const std::int64_t extent = result[i];
    result[i] *= 2;
    const std::string y = maker.node("Concat", {"x", "x"}, {{"axis", axis - 4}});
    expect_places(maker.ends(y), result, [=](Extents at) {
      at[i] %= extent;
      return place(at[0], at[1], at[2]);
    });
  }
}

TEST(Words, PadInAllWays) {
  for (const std::string mode : {"constant", "reflect", "edge"}) {
    GraphMaker maker;
    const std::string y = maker.node("Pad", {"x", maker.whole({0, 0, 1, 2, 0, 0, 0, 1})}, {{"mode", mode}});
    expect_places(maker.ends(y), {3, 5, 8}, [&](const Extents& at) {
      const auto inside = [&](std::int64_t i, std::int64_t extent) {
        if (i >= 0 && i < extent) return i;
        if (mode == "constant") return std::int64_t{-1};
        if (mode == "edge") return std::clamp<std::int64_t>(i, 0, extent - 1);
        return i < 0 ? -i : 2 * extent - 2 - i;
      };
      const std::int64_t h = inside(at[1] - 1, 4), w = inside(at[2] - 2, 5);
      return h < 0 || w < 0 ? -1 : place(at[0], h, w);
    });
  }
}

TEST(Words, TransposeSqueezeUnsqueezeFlattenReshape) {
  GraphMaker maker;
  std::string y = maker.node("Transpose", {"x"}, {{"perm", Extents{0, 3, 1, 2}}});
  y = maker.node("Unsqueeze", {y, maker.whole({-1})});
  y = maker.node("Squeeze", {y, maker.whole({4})});
  y = maker.node("Reshape", {y, maker.whole({0, -1, 6})});
  expect_places(maker.ends(y), {10, 6}, [](const Extents& at) {
    const std::int64_t i = at[0] * 6 + at[1];  // of [5, 3, 4]
    return place(i / 4 % 3, i % 4, i / 12);
  });
  GraphMaker flat;
  expect_places(flat.ends(flat.node("Flatten", {"x"})), {60}, [](const Extents& at) { return at[0]; });
}

TEST(Words, DepthToSpaceAndBack) {
  for (const std::string mode : {"DCR", "CRD"}) {
    GraphMaker maker({4, 3, 5});
    const std::string y = maker.node("DepthToSpace", {"x"}, {{"blocksize", std::int64_t{2}}, {"mode", mode}});
    expect_places(maker.ends(y), {1, 6, 10}, [&](const Extents& at) {
      const std::int64_t block = at[1] % 2 * 2 + at[2] % 2;  // one channel results, so both modes are alike
      return (block * 3 + at[1] / 2) * 5 + at[2] / 2;
    });
  }
  GraphMaker maker({12, 1, 5});
  const std::string y =
      maker.node("DepthToSpace", {"x"}, {{"blocksize", std::int64_t{2}}, {"mode", std::string("CRD")}});
  expect_places(maker.ends(y), {3, 2, 10},
                [&](const Extents& at) { return (at[0] * 4 + at[1] % 2 * 2 + at[2] % 2) * 5 + at[2] / 2; });
  GraphMaker back({15, 2, 2});
  const std::string z = back.node("SpaceToDepth", {"x"}, {{"blocksize", std::int64_t{2}}});
  expect_places(back.ends(z), {60, 1, 1}, [](const Extents& at) { return at[0] % 15 * 4 + at[0] / 15; });
}

double pooled(const std::vector<double>& x, std::int64_t channel, std::int64_t top, std::int64_t left,
              std::int64_t height, std::int64_t width, bool largest) {
  double sum = 0, most = -1e300;
  int count = 0;
  for (std::int64_t h = std::max<std::int64_t>(0, top); h < std::min<std::int64_t>(4, top + height); ++h)
    for (std::int64_t w = std::max<std::int64_t>(0, left); w < std::min<std::int64_t>(5, left + width); ++w) {
      const double value = x[static_cast<std::size_t>(channel * 20 + h * 5 + w)];
      sum += value;
      most = std::max(most, value);
      ++count;
    }
  return largest ? most : sum / count;
}

TEST(Words, PoolsWithPaddingThatIsComputed) {
  for (const std::string way : {"SAME_UPPER", "SAME_LOWER", "VALID"})
    for (const std::string op : {"MaxPool", "AveragePool"}) {
      GraphMaker maker;
      const std::string y =
          maker.node(op, {"x"}, {{"kernel_shape", Extents{2, 2}}, {"strides", Extents{1, 2}}, {"auto_pad", way}});
      const std::vector<double> x = some_numbers(2 * 60);
      const std::vector<double> seen = result_of(maker.ends(y), 2, x);
      const bool valid = way == "VALID";
      const std::int64_t height = valid ? 3 : 4, width = valid ? 2 : 3, before = way == "SAME_LOWER" ? 1 : 0;
      ASSERT_EQ(static_cast<std::int64_t>(seen.size()), 2 * 3 * height * width) << op << way;
      for (std::int64_t c = 0; c < 6; ++c)
        for (std::int64_t h = 0; h < height; ++h)
          for (std::int64_t w = 0; w < width; ++w)
            EXPECT_NEAR(seen[static_cast<std::size_t>((c * height + h) * width + w)],
                        pooled(x, c, h - before, 2 * w - before, 2, 2, op == "MaxPool"), 1e-12)
                << op << way;
    }
}

TEST(Words, Reductions) {
  const std::vector<double> x = some_numbers(2 * 60);
  const auto per_channel = [&](const std::string& op, const std::function<double(std::int64_t)>& wanted) {
    for (const bool keep : {true, false})
      for (const bool listed : {true, false}) {
        GraphMaker maker;
        Attributes attributes{{"keepdims", std::int64_t{keep ? 1 : 0}}};
        if (listed) attributes["axes"] = Extents{2, -1};
        std::vector<std::string> inputs{"x"};
        if (!listed) inputs.push_back(maker.whole({-1, -2}));
        const std::vector<double> seen = result_of(maker.ends(maker.node(op, inputs, attributes)), 2, x);
        ASSERT_EQ(seen.size(), 6U);
        for (std::int64_t c = 0; c < 6; ++c) EXPECT_NEAR(seen[static_cast<std::size_t>(c)], wanted(c), 1e-12);
      }
  };
  per_channel("ReduceMean", [&](std::int64_t c) { return pooled(x, c, 0, 0, 4, 5, false); });
  per_channel("ReduceSum", [&](std::int64_t c) { return 20 * pooled(x, c, 0, 0, 4, 5, false); });
  per_channel("ReduceMax", [&](std::int64_t c) { return pooled(x, c, 0, 0, 4, 5, true); });
  for (const std::string op : {"GlobalAveragePool", "GlobalMaxPool"}) {
    GraphMaker maker;
    const std::vector<double> seen = result_of(maker.ends(maker.node(op, {"x"})), 2, x);
    ASSERT_EQ(seen.size(), 6U);
    for (std::int64_t c = 0; c < 6; ++c)
      EXPECT_NEAR(seen[static_cast<std::size_t>(c)], pooled(x, c, 0, 0, 4, 5, op == "GlobalMaxPool"), 1e-12);
  }
}

TEST(Words, ProductsInBothOrders) {
  // 60 values to 2: weights {out, in} and {in, out}.
  const std::vector<float> weight = [] {
    std::vector<float> made;
    for (const double number : some_numbers(120, 4)) made.push_back(static_cast<float>(number));
    return made;
  }();
  std::vector<float> turned(120);
  for (std::size_t o = 0; o < 2; ++o)
    for (std::size_t i = 0; i < 60; ++i) turned[i * 2 + o] = weight[o * 60 + i];
  const std::vector<double> x = some_numbers(2 * 60);
  for (const std::string way : {"transB", "plain", "matmul", "matmul and add"}) {
    GraphMaker maker;
    const std::string flat = maker.node("Flatten", {"x"}), bias = maker.floats({0.5F, -0.25F}, {2}, "bias");
    std::string y;
    if (way == "transB")
      y = maker.node("Gemm", {flat, maker.floats(weight, {2, 60}, "weight"), bias}, {{"transB", std::int64_t{1}}});
    else if (way == "plain")
      y = maker.node("Gemm", {flat, maker.floats(turned, {60, 2}, "weight"), bias});
    else
      y = maker.node("MatMul", {flat, maker.floats(turned, {60, 2}, "weight")});
    if (way == "matmul and add") y = maker.node("Add", {bias, y});
    const ImportedNetwork imported = imported_function(maker.ends(y));
    EXPECT_EQ(kinds_of(*imported.network), "fully_connected") << way;
    const std::vector<double> seen = result_of(maker.graph, 2, x);
    for (std::size_t s = 0; s < 2; ++s)
      for (std::size_t o = 0; o < 2; ++o) {
        double wanted = way == "matmul" ? 0 : o == 0 ? 0.5 : -0.25;
        for (std::size_t i = 0; i < 60; ++i) wanted += static_cast<double>(weight[o * 60 + i]) * x[s * 60 + i];
        EXPECT_NEAR(seen[s * 2 + o], wanted, 1e-9) << way;
      }
  }
}

TEST(Words, ConvolutionsOfLines) {
  GraphMaker maker({2, 7});
  const std::vector<float> weight{1, 2, -1, 0.5F};  // 1 channel of 2, of 2 elements
  const std::string y = maker.node("Conv", {"x", maker.floats(weight, {1, 2, 2}, "weight")},
                                   {{"kernel_shape", Extents{2}}, {"strides", Extents{2}}, {"pads", Extents{1, 0}}});
  const std::vector<double> x = some_numbers(2 * 14);
  const std::vector<double> seen = result_of(maker.ends(y), 2, x);
  ASSERT_EQ(seen.size(), 2U * 4);
  for (std::size_t s = 0; s < 2; ++s)
    for (std::int64_t o = 0; o < 4; ++o) {
      double wanted = 0;
      for (std::size_t c = 0; c < 2; ++c)
        for (std::int64_t k = 0; k < 2; ++k)
          if (const std::int64_t i = 2 * o + k - 1; i >= 0)
            wanted += static_cast<double>(weight[c * 2 + static_cast<std::size_t>(k)]) *
                      x[s * 14 + c * 7 + static_cast<std::size_t>(i)];
      EXPECT_NEAR(seen[s * 4 + static_cast<std::size_t>(o)], wanted, 1e-12);
    }
}

TEST(Words, SoftmaxOfOldAndNewOperators) {
  for (const std::int64_t opset : {11, 13, 20}) {
    GraphMaker maker({3});
    maker.graph.opset = opset;
    const std::string y = maker.node("Softmax", {"x"});
    const std::vector<double> x = some_numbers(6);
    const std::vector<double> seen = result_of(maker.ends(y), 2, x);
    for (std::size_t i = 0; i < 6; ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < 3; ++c) sum += std::exp(x[i / 3 * 3 + c]);
      EXPECT_NEAR(seen[i], std::exp(x[i]) / sum, 1e-12);
    }
  }
}

// By the rounding and coordinates that PyTorch and others write.
TEST(Words, ResizeOfTheNearest) {
  GraphMaker maker;
  const std::string y = maker.node("Resize", {"x", "", maker.floats({1, 1, 2, 3}, {4})},
                                   {{"mode", std::string("nearest")},
                                    {"coordinate_transformation_mode", std::string("asymmetric")},
                                    {"nearest_mode", std::string("floor")}});
  expect_places(maker.ends(y), {3, 8, 15}, [](const Extents& at) { return place(at[0], at[1] / 2, at[2] / 3); });
}

TEST(Words, LossesThatAreAskedFor) {
  const auto with = [](const std::string& loss) {
    GraphMaker maker;
    return import_graph(maker.ends(maker.node("Relu", {"x"})), {.loss = loss, .input = ""});
  };
  EXPECT_EQ(kinds_of(*with("cross-entropy").network), "relu softmax_cross_entropy");
  EXPECT_EQ(kinds_of(*with("binary-cross-entropy").network), "relu sigmoid_cross_entropy");
  EXPECT_EQ(kinds_of(*with("mean-squared-error").network), "relu mean_squared_error");
  EXPECT_NE(error_of([&] { static_cast<void>(with("hinge")); }).find("'hinge' is not known"), std::string::npos);
}

TEST(Words, LossesOfTheGraphHaveTargets) {
  GraphMaker maker({3});
  maker.graph.inputs.push_back({"labels", ForeignType::i64, {-1}});
  maker.ends(maker.node("tidepool.CrossEntropy", {"x", "labels"},
                        {{"label_smoothing", 0.1}, {"ignore_index", std::int64_t{-100}}}));
  const ImportedNetwork imported = import_graph(maker.graph);
  ASSERT_EQ(imported.targets.size(), 1U);
  EXPECT_EQ(imported.targets[0].input, "labels");
  const auto& options = imported.network->layers.back().as<SoftmaxOptions>();
  EXPECT_EQ(options.label_smoothing, 0.1);
  EXPECT_TRUE(options.counted);
}

// x[:] = y, or x[:, :] += y, as exporters write it: by the numbers of all samples.
TEST(Words, WritingOverAllSamples) {
  for (const std::int64_t batch : {-1, 2}) {
    GraphMaker maker({3, 4, 5}, batch);
    const std::string y = maker.node("Abs", {"x"});
    const std::string count = maker.node("Gather", {maker.node("Shape", {"x"}), maker.index(0)});
    std::string numbers = maker.node("Range", {maker.index(0), count, maker.index(1)});
    numbers = maker.node("Slice", {numbers, maker.whole({0}), maker.whole({std::numeric_limits<std::int64_t>::max()}),
                                   maker.whole({0}), maker.whole({1})});
    numbers = maker.node("Unsqueeze", {numbers, maker.whole({-1})});
    expect_elements(maker.ends(maker.node("ScatterND", {"x", numbers, y}, {{"reduction", std::string("none")}})),
                    [](double x) { return std::abs(x); });
  }
}

}  // namespace
}  // namespace tide::test
