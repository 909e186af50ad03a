// What cannot be imported is named, with its place and what to do instead.
#include <gtest/gtest.h>

#include "foreign/graph_maker.h"
#include "support/error_of.h"

namespace tide::test {
namespace {

struct RefusedGraph {
  std::string name;
  std::function<void(GraphMaker&)> make;
  std::vector<std::string> says;
  friend std::ostream& operator<<(std::ostream& out, const RefusedGraph& row) { return out << row.name; }
};

// Ends in this node.
RefusedGraph refused(std::string name, const std::function<std::string(GraphMaker&)>& make,
                     std::vector<std::string> says) {
  return {std::move(name), [make](GraphMaker& m) { m.ends(make(m)); }, std::move(says)};
}

std::vector<RefusedGraph> refused_graphs() {
  const Extents sides{2, 2};
  return {
      refused("UnknownWord", [](GraphMaker& m) { return m.node("Lstm", {"x"}); },
              {"Lstm 'Lstm_0'", "there is no layer for it", "docs/models.md"}),
      refused("UnknownDomain", [](GraphMaker& m) { return m.node("com.example.Relu", {"x"}); },
              {"Relu 'com.example.Relu_0'", "domain 'com.example'"}),
      refused("LayerNorm",
              [](GraphMaker& m) {
                return m.node("LayerNormalization", {"x", m.floats({1, 1, 1, 1, 1}, {5}, "w")});
              },
              {"normalizes over the last axes", "group_norm"}),
      refused("Attention",
              [](GraphMaker& m) {
                return m.node("MatMul", {"x", "x"});
              },
              {"multiplies two computed values"}),
      refused("MatrixOfImages",
              [](GraphMaker& m) {
                return m.node("MatMul", {"x", m.floats(std::vector<float>(10, 1), {5, 2}, "w")});
              },
              {"multiplies 3x4x5 with a matrix", "convolution of 1x1"}),
      refused("ReshapeOfTheBatch",
              [](GraphMaker& m) {
                return m.node("Reshape", {"x", m.whole({-1, 5})});
              },
              {"Reshape", "keep the batch", "export with the samples apart"}),
      refused("TransposeOfTheBatch",
              [](GraphMaker& m) {
                return m.node("Transpose", {"x"}, {{"perm", Extents{1, 0, 2, 3}}});
              },
              {"moves the batch"}),
      refused("ReductionOfAll", [](GraphMaker& m) { return m.node("ReduceMean", {"x"}); },
              {"goes over all axes", "name those behind the batch"}),
      refused("ReductionOfTheBatch",
              [](GraphMaker& m) {
                return m.node("ReduceMean", {"x"}, {{"axes", Extents{0, 2}}});
              },
              {"goes over the batch"}),
      refused("SoftmaxOfTheBatch",
              [](GraphMaker& m) {
                return m.node("Softmax", {"x"}, {{"axis", std::int64_t{0}}});
              },
              {"goes over the batch"}),
      refused("SteppedSlice",
              [](GraphMaker& m) {
                return m.node("Slice", {"x", m.whole({0}), m.whole({4}), m.whole({2}), m.whole({2})});
              },
              {"takes every 2th element"}),
      refused("SliceOfTheBatch",
              [](GraphMaker& m) {
                return m.node("Slice", {"x", m.whole({1}), m.whole({2}), m.whole({0})});
              },
              {"takes a part of the batch"}),
      refused("GatherByAList",
              [](GraphMaker& m) {
                return m.node("Gather", {"x", m.whole({0, 2})}, {{"axis", std::int64_t{1}}});
              },
              {"by a list of indices"}),
      refused("APartThatIsWrittenOver",
              [](GraphMaker& m) {
                return m.node("ScatterND", {"x", m.whole({0}), m.node("Relu", {"x"})});
              },
              {"writes over a part of a computed value", "torch.cat"}),
      refused("AxisThatIsNotThere",
              [](GraphMaker& m) {
                return m.node("Concat", {"x", "x"}, {{"axis", std::int64_t{4}}});
              },
              {"names axis 4 of a value with 4 axes"}),
      refused("LargestOfTwo",
              [](GraphMaker& m) {
                return m.node("Max", {"x", m.node("Relu", {"x"})});
              },
              {"the larger of two computed values"}),
      refused("ErfAlone", [](GraphMaker& m) { return m.node("Erf", {"x"}); }, {"as a part of GELU only"}),
      refused("CubeAlone",
              [](GraphMaker& m) {
                return m.node("Pow", {"x", m.number(3)});
              },
              {"as a part of GELU only", "powers can be 1, 2 and 1/2"}),
      refused("ComparisonAlone",
              [](GraphMaker& m) {
                return m.node("Greater", {"x", m.number(1)});
              },
              {"as a part of softplus"}),
      refused("ChoiceOfValues",
              [](GraphMaker& m) {
                return m.node("Where", {m.node("Greater", {"x", m.number(1)}), "x", m.node("Relu", {"x"})});
              },
              {"chooses between computed values"}),
      refused("Power",
              [](GraphMaker& m) {
                return m.node("Pow", {"x", m.number(1.5F)});
              },
              {"its exponent is 1.5"}),
      refused("NormAlone",
              [](GraphMaker& m) {
                return m.node("ReduceL2", {"x"}, {{"axes", Extents{1}}});
              },
              {"only where it divides what it is the norm of"}),
      refused("LogSoftmaxAlone",
              [](GraphMaker& m) {
                return m.node("LogSoftmax", {"x"}, {{"axis", std::int64_t{1}}});
              },
              {"the loss has a softmax of its own"}),
      refused("SpreadAlone",
              [](GraphMaker& m) {
                return m.node("Expand", {m.node("GlobalAveragePool", {"x"}), m.whole({1, 3, 4, 5})});
              },
              {"use Resize"}),
      refused("TrainedSlope",
              [](GraphMaker& m) {
                return m.node("PRelu", {"x", m.floats({0.5F}, {1}, "slope")});
              },
              {"its slope is trained"}),
      refused("WeightsThatAreComputed",
              [](GraphMaker& m) {
                return m.node("Conv", {"x", m.node("Relu", {"x"})});
              },
              {"its weight is not a constant but computed"}),
      refused("WeightsOfOtherChannels",
              [](GraphMaker& m) {
                return m.node("Conv", {"x", m.floats(std::vector<float>(8, 1), {1, 2, 2, 2}, "w")});
              },
              {"its weight is for 2 channels but its input has 3"}),
      refused("KernelsOfAnotherSize",
              [](GraphMaker& m) {
                return m.node("Conv", {"x", m.floats(std::vector<float>(12, 1), {1, 3, 2, 2}, "w")},
                              {{"kernel_shape", Extents{2, 3}}});
              },
              {"its kernel is 3 but its weight is for 2"}),
      refused("AWindowThatDoesNotFit",
              [&](GraphMaker& m) {
                return m.node("MaxPool", {"x"}, {{"kernel_shape", Extents{9, 2}}});
              },
              {"MaxPool 'MaxPool_0'"}),
      refused(
          "APoolOfVolumes",
          [](GraphMaker& m) {
            return m.node("MaxPool", {m.node("Unsqueeze", {"x", m.whole({2})})}, {{"kernel_shape", Extents{1, 2, 2}}});
          },
          {"there are layers for channels x height x width"}),
      refused("AnAttributeOfAnotherType",
              [](GraphMaker& m) {
                return m.node("LeakyRelu", {"x"}, {{"alpha", std::string("a lot")}});
              },
              {"its attribute 'alpha' is no number"}),
      refused("CubicResize",
              [](GraphMaker& m) {
                return m.node("Resize", {"x", "", m.floats({1, 1, 2, 2}, {4})}, {{"mode", std::string("cubic")}});
              },
              {"its mode is 'cubic'"}),
      refused("ResizedBatch",
              [](GraphMaker& m) {
                return m.node("Resize", {"x", "", m.floats({2, 1, 1, 2}, {4})});
              },
              {"it resizes the batch"}),
      refused("InputThatNobodyMakes", [](GraphMaker& m) { return m.node("Relu", {"y"}); },
              {"its input 'y' is made by no node before it"}),
      refused("InputThatIsMissing",
              [](GraphMaker& m) {
                return m.node("Add", {"x", ""});
              },
              {"its input 2 is missing"}),
      refused("DropoutWithoutAConstantRatio",
              [](GraphMaker& m) {
                return m.node("Dropout", {"x", m.node("GlobalAveragePool", {"x"})});
              },
              {"its ratio is not one constant number"}),
      refused("RandomNumbersAlone",
              [](GraphMaker& m) {
                return m.node("Mul", {"x", m.node("RandomUniformLike", {"x"})});
              },
              {"random numbers as they are"}),
      refused("ADivisorThatIs0",
              [](GraphMaker& m) {
                return m.node("Div", {"x", m.number(0)});
              },
              {"divides by 0"}),
      refused("AConstantByAValue",
              [](GraphMaker& m) {
                return m.node("Div", {m.number(1), "x"});
              },
              {"divides a constant by a computed value"}),
      refused("ConstantsThatDoNotFit",
              [](GraphMaker& m) {
                return m.node("Add", {"x", m.floats({1, 2}, {2, 1, 1}, "c")});
              },
              {"its constant has extents 2x1x1, which do not fit 3x4x5"}),
      refused("OpenParts",
              [](GraphMaker& m) {
                return m.node("Split", {"x", m.whole({1, 1})}, {{"axis", std::int64_t{1}}}, 2);
              },
              {"its parts have 2 of 3 elements"}),
      {"NoOutputs", [](GraphMaker& m) { m.node("Relu", {"x"}); }, {"the model has no outputs"}},
      {"AnOutputThatIsNotMade", [](GraphMaker& m) { m.ends("y"); }, {"output 'y' is made by no node"}},
      {"AnOutputThatIsConstant", [](GraphMaker& m) { m.ends(m.number(1)); }, {"does not depend on its input"}},
      {"NoInput",
       [](GraphMaker& m) {
         m.graph.inputs.clear();
         m.ends(m.node("Relu", {"x"}));
       },
       {"no input that samples could come by"}},
      {"TwoInputs",
       [](GraphMaker& m) {
         m.graph.inputs.push_back({"y", ForeignType::f32, {-1, 3}});
         m.ends(m.node("Relu", {"x"}));
       },
       {"several inputs, 'x' and 'y'", "join them"}},
      {"WholeNumbersAsSamples",
       [](GraphMaker& m) {
         m.graph.inputs[0].type = ForeignType::i64;
         m.ends(m.node("Relu", {"x"}));
       },
       {"has type int64", "there are layers for floats"}},
      {"OpenExtents",
       [](GraphMaker& m) {
         m.graph.inputs[0].shape = {-1, 3, -1, -1};
         m.ends(m.node("Relu", {"x"}));
       },
       {"leaves extent 2 open", "--input 3x224x224"}},
      {"ArraysUsedInTwoWays",
       [](GraphMaker& m) {
         const std::string w = m.floats(std::vector<float>(9, 1), {3, 3, 1, 1}, "w");
         const std::string once = m.node("Conv", {"x", w});
         m.ends(m.node("ConvTranspose", {once, w}));
       },
       {"uses its array 'w', too, but not in the same way"}},
      {"APartThatIsFrozen",
       [](GraphMaker& m) {
         std::vector<std::string> inputs{"x"};
         for (const char* name : {"scale", "shift", "mean", "variance"})
           inputs.push_back(m.floats({1, 1, 1}, {3}, name));
         m.graph.frozen = {"scale"};
         m.ends(m.node("BatchNormalization", inputs));
       },
       {"a part of its parameters is frozen", "freeze all of them"}},
      {"StatisticsThatAreRead",
       [](GraphMaker& m) {
         std::vector<std::string> inputs{"x"};
         for (const char* name : {"scale", "shift", "mean", "variance"})
           inputs.push_back(m.floats({1, 1, 1}, {3}, name));
         m.node("BatchNormalization", inputs, {{"training_mode", std::int64_t{1}}}, 3);
         m.ends("BatchNormalization_0:1");
       },
       {"its statistics are read"}},
  };
}

class Refusals : public testing::TestWithParam<RefusedGraph> {};

TEST_P(Refusals, SayWhatAndWhy) {
  GraphMaker maker;
  GetParam().make(maker);
  const std::string error = error_of([&] { static_cast<void>(imported_function(maker.graph)); });
  EXPECT_FALSE(error.empty()) << "it was imported";
  for (const std::string& piece : GetParam().says) EXPECT_NE(error.find(piece), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(All, Refusals, testing::ValuesIn(refused_graphs()),
                         [](const auto& entry) { return entry.param.name; });

TEST(Refusals, NameThePlaceThatTheNodeCameFrom) {
  GraphMaker maker;
  maker.ends(maker.node("NoWord", {"x"}));
  maker.graph.nodes.back().place = "model.py:31, in forward";
  EXPECT_TRUE(error_of([&] {
                static_cast<void>(import_graph(maker.graph));
              }).starts_with("NoWord 'NoWord_0' (model.py:31, in forward): "));
}

TEST(Refusals, AreOfWhatAResultNeedsAlone) {
  GraphMaker maker;
  maker.node("NoWord", {"x"});
  EXPECT_EQ(kinds_of(*imported_function(maker.ends(maker.node("Relu", {"x"}))).network), "relu");
}

TEST(Refusals, InputsThatDoNotFitTheModel) {
  GraphMaker maker;
  maker.ends(maker.node("Relu", {"x"}));
  const auto with = [&](const std::string& input) {
    return error_of([&] { static_cast<void>(import_graph(maker.graph, {.loss = "", .input = input})); });
  };
  EXPECT_EQ(with("3x4x5"), "");
  EXPECT_NE(with("3x4x6").find("does not fit 'x'"), std::string::npos);
  EXPECT_NE(with("3x4").find("does not fit 'x'"), std::string::npos);
  for (const char* text : {"3x", "x3", "3x0x5", "three", "3x-4x5", "99999999999999999999"})
    EXPECT_NE(with(text).find("write it as 3x224x224"), std::string::npos) << text;
}

TEST(Refusals, OutputsBeyondTheFirstAreSaidToBeLeftOut) {
  GraphMaker maker;
  const std::string first = maker.node("Relu", {"x"}), second = maker.node("Tanh", {"x"});
  maker.graph.outputs = {first, second};
  const ImportedNetwork imported = imported_function(maker.graph);
  EXPECT_EQ(kinds_of(*imported.network), "relu");
  ASSERT_EQ(imported.notes.size(), 1U);
  EXPECT_NE(imported.notes[0].find("only 'Relu_0' is imported"), std::string::npos);
}

}  // namespace
}  // namespace tide::test
