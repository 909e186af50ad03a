// What PyTorch's exporters write (files/make_files.py), against what PyTorch computes in double precision.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "foreign/graph_step.h"
#include "formats/onnx/onnx.h"
#include "network/kind.h"

namespace tide::test {
namespace {

std::string file_of(const std::string& name) { return std::string(TIDE_TEST_DATA) + "/foreign/files/" + name; }

struct Reference {
  std::vector<double> answer;
  double loss = 0;
  DoubleArrays gradients, statistics;
};

Reference read_reference(const std::string& name) {
  Reference reference;
  std::ifstream file(file_of(name + ".txt"));
  EXPECT_TRUE(file) << name;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what, key;
    words >> what >> key;
    std::vector<double> values;
    for (double value = 0; words >> value;) values.push_back(value);
    if (what == "answer") reference.answer = values;
    if (what == "loss") reference.loss = values.at(0);
    if (what == "gradient") reference.gradients[key] = values;
    if (what == "statistic") reference.statistics[key] = values;
  }
  return reference;
}

constexpr std::int64_t kBatch2 = 2;

std::vector<double> example_input() {
  std::vector<double> x(kBatch2 * 3 * 10 * 10);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37 * static_cast<double>(i));
  return x;
}

std::vector<double> example_labels(const Network& network) {
  std::vector<double> labels(static_cast<std::size_t>(kBatch2 * network.labels_per_sample()));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<double>(i % 3);
  return labels;
}

std::string all_notes(const ImportedNetwork& imported) { return fmt::format("{}", fmt::join(imported.notes, "\n")); }

using Export = std::tuple<const char*, const char*>;

class Exports : public testing::TestWithParam<Export> {
 protected:
  void SetUp() override {
    if (!has_onnx()) GTEST_SKIP() << "this build reads no ONNX files";
    graph_ = read_onnx(file_of(name_ + "." + road_ + ".onnx"));
    reference_ = read_reference(name_);
  }
  std::string name_ = std::get<0>(GetParam()), road_ = std::get<1>(GetParam());
  ForeignGraph graph_;
  Reference reference_;
};

TEST_P(Exports, AnswerWhatPyTorchAnswers) {
  const ImportedNetwork imported = import_graph(graph_, {.loss = "", .input = ""});
  const std::vector<double> seen = answer(imported.network, values_of(graph_, imported), kBatch2, example_input());
  // Weights that were folded were rounded to floats.
  EXPECT_LE(relative_difference(seen, reference_.answer), road_ == "fold" ? 3e-7 : 1e-10);
}

TEST_P(Exports, TrainAsInPyTorch) {
  if (road_ == "fold") GTEST_SKIP() << "has other parameters";
  const ImportedNetwork imported = import_graph(graph_);
  const GraphStep step = step_of(graph_, imported, kBatch2, example_input(), example_labels(*imported.network));
  EXPECT_NEAR(step.loss, reference_.loss, 1e-10);
  double whole = 0;
  for (const auto& [array, gradient] : reference_.gradients)
    for (const double value : gradient) whole += value * value;
  EXPECT_EQ(step.gradients.size(), reference_.gradients.size());
  for (const auto& [array, gradient] : reference_.gradients) {
    ASSERT_TRUE(step.gradients.contains(array)) << array;
    double difference = 0, length = 1e-12 * whole;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      difference += std::pow(step.gradients.at(array).at(i) - gradient[i], 2);
      length += gradient[i] * gradient[i];
    }
    EXPECT_LE(std::sqrt(difference / length), 1e-8) << array;
  }
  EXPECT_EQ(step.statistics.size(), reference_.statistics.size());
  for (const auto& [array, values] : reference_.statistics)
    EXPECT_LE(relative_difference(step.statistics.at(array), values), 1e-8) << array;
}

TEST_P(Exports, HaveNoMoreLayersThanTheModelHasModules) {
  const ImportedNetwork imported = import_graph(graph_);
  std::map<LayerKind, int> count;
  for (const Layer& layer : imported.network->layers) ++count[layer.kind];
  EXPECT_EQ(count[LayerKind::transpose], 0);
  EXPECT_LE(count[LayerKind::reshape] + count[LayerKind::flatten], 1);
  EXPECT_EQ(count[LayerKind::channel_shuffle], name_ == "shuffle" ? 2 : 0);
  if (name_ == "residual") {
    EXPECT_EQ(count[LayerKind::batch_norm], road_ == "fold" ? 0 : 3);
    EXPECT_EQ(count[LayerKind::dropout], road_ == "script" || road_ == "train" ? 1 : 0);
  }
  if (name_ == "mobile") {
    EXPECT_EQ(count[LayerKind::drop_path], road_ == "script" || road_ == "train" ? 1 : 0);
    EXPECT_EQ(count[LayerKind::activation], 4);  // hard-swish, SiLU, hard-sigmoid, ReLU6
  }
  if (name_ == "functions") {
    EXPECT_EQ(count[LayerKind::l2_normalize], 1);
    EXPECT_EQ(count[LayerKind::group_norm], 1);
    EXPECT_EQ(count[LayerKind::activation], 6);  // two GELUs, Mish, leaky ReLU, ELU, softplus
    EXPECT_EQ(count[LayerKind::scale], 1);
  }
}

TEST_P(Exports, SayWhatIsNotAsItWas) {
  const std::string notes = all_notes(import_graph(graph_));
  const bool norms = name_ == "residual" || name_ == "mobile" || name_ == "shuffle" || name_ == "segment";
  const bool in_evaluation = norms && (road_ == "train" || road_ == "eval");
  EXPECT_EQ(notes.find("written for evaluation") != std::string::npos, in_evaluation) << notes;
  EXPECT_EQ(notes.find("folded into convolutions") != std::string::npos, norms && road_ == "fold") << notes;
  if (name_ == "residual" && road_ == "fold") {
    EXPECT_NE(notes.find("3 batch norms were folded"), std::string::npos) << notes;
    EXPECT_NE(notes.find("optimize=False"), std::string::npos) << notes;
  }
}

std::string export_name(const testing::TestParamInfo<Export>& entry) {
  return fmt::format("{}_{}", std::get<0>(entry.param), std::get<1>(entry.param));
}

INSTANTIATE_TEST_SUITE_P(All, Exports,
                         testing::Combine(testing::Values("residual", "mobile", "shuffle", "segment", "functions"),
                                          testing::Values("script", "train", "eval", "fold")),
                         export_name);

TEST(ExportedPlaces, AreNamedInMessages) {
  if (!has_onnx()) GTEST_SKIP() << "this build reads no ONNX files";
  ForeignGraph graph = read_onnx(file_of("residual.train.onnx"));
  for (ForeignNode& node : graph.nodes)
    if (node.op == "MaxPool") node.op = "NoSuchWord";
  try {
    static_cast<void>(import_graph(graph));
    FAIL() << "imported";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("make_files.py:"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tide::test
