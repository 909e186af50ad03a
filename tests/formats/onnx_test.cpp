#include "formats/onnx/onnx.h"

#include <gtest/gtest.h>

#include <fstream>

#include "data/image_files.h"
#include "foreign/lower.h"
#include "formats/onnx_bytes.h"
#include "support/error_of.h"
#include "support/temporary_file.h"

namespace tide::test {
namespace {

std::span<const std::byte> bytes_in(const std::string& text) { return std::as_bytes(std::span(text)); }

ForeignGraph parsed(const std::string& text, const std::filesystem::path& folder = {}) {
  return parse_onnx(bytes_in(text), "net.onnx", folder);
}

std::string refusal_of(const std::string& text, const std::filesystem::path& folder = {}) {
  const std::string error = error_of([&] { static_cast<void>(parsed(text, folder)); });
  EXPECT_TRUE(error.empty() || error.starts_with("net.onnx")) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  return error;
}

#define REQUIRE_ONNX() \
  if (!has_onnx()) GTEST_SKIP() << "this build reads no ONNX files"

TEST(Onnx, ReadsWhatOthersWrite) {
  REQUIRE_ONNX();
  const ForeignGraph graph = parsed(onnx_small());
  EXPECT_EQ(graph.name, "small");
  EXPECT_EQ(graph.opset, 20);
  ASSERT_EQ(graph.inputs.size(), 1U);
  EXPECT_EQ(graph.inputs[0].shape, (std::vector<std::int64_t>{-1, 3, 2, 2}));
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_EQ(graph.nodes[1].op, "Add");
  EXPECT_EQ(graph.nodes[1].inputs, (std::vector<std::string>{"y", "array"}));
  EXPECT_EQ(graph.outputs, std::vector<std::string>{"z"});
  EXPECT_EQ(values_of(graph.constants.at("array")), kOnnxValues);
  EXPECT_TRUE(looks_like_onnx(bytes_in(onnx_small())));
}

// What exporters call every graph is the file's name instead.
TEST(Onnx, GraphsAreCalledAsTheirFilesWhereTheyHaveNoNameOfTheirOwn) {
  REQUIRE_ONNX();
  const TemporaryFile file("some.net.onnx");
  const std::string stem = file.path().stem().string();
  for (const std::string name : {"main_graph", "torch_jit", "torch-jit-export", "my_net"}) {
    ForeignGraph graph;
    graph.name = name;
    graph.opset = 21;
    graph.inputs = {{"x", ForeignType::f32, {-1, 3}}};
    graph.outputs = {"x"};
    write_onnx(graph, file.path());
    EXPECT_EQ(read_onnx(file.path()).name, name == "my_net" ? name : stem);
    // This program merges nothing.
    EXPECT_FALSE(read_onnx(file.path()).merged);
  }
  EXPECT_TRUE(parsed(onnx_small()).merged);
}

TEST(Onnx, ArraysStandInTheFieldsOfTheirTypes) {
  REQUIRE_ONNX();
  const auto values_with = [](int type, const std::string& content) {
    return doubles_of(
        parsed(onnx_model(onnx_graph_with(onnx_tensor("array", type, {3, 1, 1}) + content))).constants.at("array"));
  };
  const std::vector<double> wanted{1.5, -2, 0.25};
  EXPECT_EQ(values_with(1, onnx_field(4, bytes_of_numbers(kOnnxValues))), wanted);
  EXPECT_EQ(values_with(11, onnx_field(10, bytes_of_numbers(wanted))), wanted);
  EXPECT_EQ(values_with(11, onnx_field(9, bytes_of_numbers(wanted))), wanted);
  const std::vector<double> whole{1, -2, 3};
  EXPECT_EQ(values_with(7, onnx_field(7, onnx_number(1) + onnx_number(~std::uint64_t{1}) + onnx_number(3))), whole);
  EXPECT_EQ(values_with(6, onnx_field(9, bytes_of_numbers<std::int32_t>({1, -2, 3}))), whole);
  // 16 bits stand in 32: 1.5, -2 and 0.25 as halves, and as the upper halves of floats.
  const auto narrow = [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return onnx_field(5, onnx_number(a) + onnx_number(b) + onnx_number(c));
  };
  EXPECT_EQ(values_with(10, narrow(0x3E00, 0xC000, 0x3400)), wanted);
  EXPECT_EQ(values_with(16, narrow(0x3FC0, 0xC000, 0x3E80)), wanted);
  EXPECT_EQ(values_with(9, narrow(1, 0, 1)), (std::vector<double>{1, 0, 1}));
}

TEST(Onnx, WhatIsWrittenIsReadAgain) {
  REQUIRE_ONNX();
  ForeignGraph graph;
  graph.name = "written";
  graph.opset = 21;
  graph.inputs = {{"x", ForeignType::f32, {-1, 3, 8, 8}}, {"labels", ForeignType::i64, {-1}}};
  graph.outputs = {"y"};
  const auto owner = std::make_shared<const std::vector<float>>(kOnnxValues);
  const ForeignTensor tensor{ForeignType::f32, {3}, std::as_bytes(std::span(*owner)), owner};
  graph.constants["w"] = tensor;
  ForeignNode node;
  node.op = "Any";
  node.name = "any \xc3\xa9";
  node.domain = "tidepool";
  node.inputs = {"x", "", "w"};
  node.outputs = {"y"};
  node.attributes = {{"whole", std::int64_t{-7}},
                     {"number", 0.1},
                     {"text", std::string("word")},
                     {"wholes", std::vector<std::int64_t>{1, -2}},
                     {"numbers", std::vector<double>{0.5, 1e-5}},
                     {"texts", std::vector<std::string>{"a", "b"}},
                     {"tensor", tensor}};
  graph.nodes = {node};
  const TemporaryFile file("written.onnx");
  write_onnx(graph, file.path());
  const ForeignGraph again = read_onnx(file.path());
  EXPECT_EQ(again.name, graph.name);
  EXPECT_EQ(again.opset, graph.opset);
  ASSERT_EQ(again.inputs.size(), 2U);
  EXPECT_EQ(again.inputs[0].shape, graph.inputs[0].shape);
  EXPECT_EQ(again.inputs[1].type, ForeignType::i64);
  ASSERT_EQ(again.nodes.size(), 1U);
  EXPECT_EQ(again.nodes[0].name, node.name);
  EXPECT_EQ(again.nodes[0].domain, node.domain);
  EXPECT_EQ(again.nodes[0].inputs, node.inputs);
  for (const char* name : {"whole", "number", "text", "wholes", "numbers", "texts"}) {
    const ForeignAttribute &a = again.nodes[0].attributes.at(name), &b = node.attributes.at(name);
    EXPECT_EQ(a.index(), b.index()) << name;
  }
  EXPECT_EQ(std::get<std::int64_t>(again.nodes[0].attributes.at("whole")), -7);
  EXPECT_EQ(std::get<double>(again.nodes[0].attributes.at("number")), 0.1);  // as somebody wrote it
  EXPECT_EQ(std::get<std::vector<double>>(again.nodes[0].attributes.at("numbers")), (std::vector<double>{0.5, 1e-5}));
  EXPECT_EQ(std::get<std::vector<std::string>>(again.nodes[0].attributes.at("texts")).back(), "b");
  EXPECT_EQ(values_of(std::get<ForeignTensor>(again.nodes[0].attributes.at("tensor"))), kOnnxValues);
  EXPECT_EQ(values_of(again.constants.at("w")), kOnnxValues);
}

TEST(Onnx, OperatorSetsAreThoseThatAreKnown) {
  REQUIRE_ONNX();
  for (std::int64_t operators = kOldestOnnxOperators; operators <= kNewestOnnxOperators; ++operators)
    EXPECT_EQ(refusal_of(onnx_small(operators)), "") << operators;
  for (const std::int64_t operators : {0L, 1L, 10L, 25L, 1000L, -1L})
    EXPECT_NE(refusal_of(onnx_small(operators)).find("11 to 24 are read"), std::string::npos) << operators;
  EXPECT_EQ(kOldestOnnxOperators, 11);
  EXPECT_EQ(kNewestOnnxOperators, 24);
}

TEST(Onnx, FieldsThatAreNewerAreSkipped) {
  REQUIRE_ONNX();
  // Numbers that no version has, of every kind of content, in each message.
  const std::string newer = onnx_field(900, 7) + onnx_field(901, std::string("text")) + onnx_number(902 << 3 | 5) +
                            std::string(4, 'a') + onnx_number(903 << 3 | 1) + std::string(8, 'b');
  const std::string array = onnx_tensor("array", 1, {3, 1, 1}) + onnx_field(9, bytes_of_numbers(kOnnxValues)) + newer;
  std::string graph = onnx_graph_with(array, newer);
  graph += onnx_field(1, onnx_node("Tanh", {"z"}, "u",
                                   newer + onnx_field(5, onnx_field(1, std::string("a")) + onnx_field(20, 2) + newer)));
  const ForeignGraph read = parsed(
      onnx_model(graph, 20, newer + onnx_field(8, onnx_field(1, std::string("com.example")) + onnx_field(2, 3))));
  EXPECT_EQ(read.nodes.size(), 3U);
  EXPECT_EQ(values_of(read.constants.at("array")), kOnnxValues);
}

TEST(Onnx, PlacesAreOfTheModelsOwnCode) {
  REQUIRE_ONNX();
  const auto place = [](const std::string& trace) {
    const std::string entry = onnx_field(9, onnx_entry("pkg.torch.onnx.stack_trace", trace));
    const ForeignGraph graph =
        parsed(onnx_model(onnx_field(1, onnx_node("Relu", {"x"}, "y", entry)) +
                          onnx_field(11, onnx_input("x", {-1, 3})) + onnx_field(12, onnx_input("y", {-1, 3}))));
    return graph.nodes.at(0).place;
  };
  const std::string own = "File \"/home/user/model.py\", line 31, in forward\n    x = self.pool(x)\n";
  const std::string torch =
      "  File \"/usr/lib/python3/torch/nn/modules/pooling.py\", line 224, in forward\n    return 1";
  EXPECT_EQ(place(own), "model.py:31, in forward");
  EXPECT_EQ(place(own + torch), "model.py:31, in forward");
  EXPECT_EQ(place(torch), "pooling.py:224, in forward");
  EXPECT_EQ(place("File \"/home/user/model.py"), "");
  EXPECT_EQ(place("nothing"), "");
}

TEST(Onnx, OtherFilesAreNone) {
  REQUIRE_ONNX();
  EXPECT_NE(refusal_of("").find("is not an ONNX model"), std::string::npos);
  EXPECT_NE(refusal_of("hello, world").find("is not an ONNX model"), std::string::npos);
  EXPECT_NE(refusal_of(onnx_field(1, 8)).find("it has no graph"), std::string::npos);
  const std::string small = onnx_small();
  EXPECT_NE(refusal_of(small.substr(0, small.size() / 2)).find("is damaged"), std::string::npos);
}

TEST(Onnx, ArraysThatAreNotWhatTheySayAreNamed) {
  REQUIRE_ONNX();
  const auto with = [](const std::string& array) { return refusal_of(onnx_model(onnx_graph_with(array))); };
  const std::string values = onnx_field(9, bytes_of_numbers(kOnnxValues));
  EXPECT_NE(with(onnx_tensor("array", 1, {4}) + values).find("array \"array\" has 12 bytes, but its shape takes 16"),
            std::string::npos);
  EXPECT_NE(with(onnx_tensor("array", 1, {-3}) + values).find("impossible shape"), std::string::npos);
  EXPECT_NE(with(onnx_tensor("array", 1, {1LL << 40, 1LL << 40}) + values).find("impossible shape"), std::string::npos);
  EXPECT_NE(with(onnx_tensor("array", 8, {3}) + values).find("number 8"), std::string::npos);
  EXPECT_NE(with(onnx_tensor("", 1, {3}) + values).find("has no name"), std::string::npos);
  const std::string array = onnx_tensor("array", 1, {3, 1, 1}) + values;
  EXPECT_NE(refusal_of(onnx_model(onnx_graph_with(array, onnx_field(5, array)))).find("two arrays are called"),
            std::string::npos);
  EXPECT_NE(refusal_of(onnx_model(onnx_graph_with(array, onnx_field(15, onnx_field(1, array))))).find("sparse"),
            std::string::npos);
}

TEST(Onnx, NamesAreText) {
  REQUIRE_ONNX();
  const auto with = [](const std::string& name) {
    return refusal_of(onnx_model(onnx_field(1, onnx_node("Relu", {name}, "y")) +
                                 onnx_field(11, onnx_input("x", {-1, 3})) + onnx_field(12, onnx_input("y", {-1, 3}))));
  };
  EXPECT_EQ(with("x"), "");
  EXPECT_EQ(with("layer \xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8a"), "");
  for (const char* name : {"\xff", "a\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "two\nlines"})
    EXPECT_NE(with(name).find("is no name"), std::string::npos) << name;
  ForeignGraph graph;
  graph.name = "\xff";
  const TemporaryFile file("unwritable.onnx");
  EXPECT_NE(error_of([&] { write_onnx(graph, file.path()); }).find("not UTF-8"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file.path()));
}

// A file that has two bytes for each of many empty messages.
TEST(Onnx, EmptyMessagesWithoutEndAreRefused) {
  REQUIRE_ONNX();
  std::string nodes;
  for (int i = 0; i < 200000; ++i) nodes += onnx_field(1, std::string());
  EXPECT_NE(refusal_of(onnx_model(nodes)).find("entries in"), std::string::npos);
}

class ExternalArrays : public testing::Test {
 protected:
  static std::string with(const std::string& location, const std::string& more = "", std::int64_t extent = 3) {
    const std::string array = onnx_tensor("array", 1, {extent, 1, 1}) + onnx_field(14, 1) +
                              onnx_field(13, onnx_entry("location", location)) + more;
    return onnx_model(onnx_graph_with(array));
  }
  static std::string part(const std::string& offset, const std::string& length) {
    std::string more;
    if (!offset.empty()) more += onnx_field(13, onnx_entry("offset", offset));
    if (!length.empty()) more += onnx_field(13, onnx_entry("length", length));
    return more;
  }
  [[nodiscard]] std::string refused(const std::string& location, const std::string& more = "") const {
    return refusal_of(with(location, more), model_);
  }
  void write(const std::filesystem::path& to) const { write_bytes(to, bytes_of_numbers(kOnnxValues)); }

  TemporaryFolder folder_{"external"};
  std::filesystem::path model_ = folder_.path() / "model";
  void SetUp() override {
    if (!has_onnx()) GTEST_SKIP();
    write(model_ / "weights.bin");
    write(model_ / "inner" / "weights.bin");
    write(folder_.path() / "outside.bin");
  }
};

TEST_F(ExternalArrays, AreReadFromTheFolderOfTheModel) {
  for (const char* location : {"weights.bin", "inner/weights.bin", "./weights.bin"})
    EXPECT_EQ(values_of(parsed(with(location), model_).constants.at("array")), kOnnxValues) << location;
  EXPECT_EQ(values_of(parsed(with("weights.bin", part("4", "8"), 2), model_).constants.at("array")),
            (std::vector<float>{-2, 0.25F}));
  EXPECT_EQ(values_of(parsed(with("weights.bin", part("8", ""), 1), model_).constants.at("array")),
            std::vector<float>{0.25F});
  // Beside a file that is read by its name.
  write_bytes(model_ / "net.onnx", with("weights.bin"));
  EXPECT_EQ(values_of(read_onnx(model_ / "net.onnx").constants.at("array")), kOnnxValues);
}

TEST_F(ExternalArrays, PathsThatLeaveTheFolderAreRefused) {
  EXPECT_NE(refused("../outside.bin").find("leaves that folder"), std::string::npos);
  EXPECT_NE(refused("inner/../../outside.bin").find("leaves that folder"), std::string::npos);
  EXPECT_NE(refused((folder_.path() / "outside.bin").string()).find("is not within that folder"), std::string::npos);
  EXPECT_NE(refused("/etc/passwd").find("is not within that folder"), std::string::npos);
  std::filesystem::create_symlink(folder_.path() / "outside.bin", model_ / "link.bin");
  EXPECT_NE(refused("link.bin").find("is a link that leaves that folder"), std::string::npos);
  std::filesystem::create_directory_symlink(folder_.path(), model_ / "up");
  EXPECT_NE(refused("up/outside.bin").find("is a link that leaves that folder"), std::string::npos);
  std::filesystem::create_symlink("weights.bin", model_ / "near.bin");
  EXPECT_EQ(refused("near.bin"), "");
}

TEST_F(ExternalArrays, WhatIsNoFileIsRefused) {
  EXPECT_NE(refused("").find("is no name"), std::string::npos);
  EXPECT_NE(refused(std::string("weights.bin\0.txt", 16)).find("is no name"), std::string::npos);
  EXPECT_NE(refused("nothing.bin").find("is not there"), std::string::npos);
  EXPECT_NE(error_of([&] { static_cast<void>(parsed(with("inner"), model_)); }).find("it is no file"),
            std::string::npos);
}

TEST_F(ExternalArrays, PartsThatTheFileDoesNotHaveAreRefused) {
  EXPECT_NE(refused("weights.bin", part("4", "12")).find("are not there"), std::string::npos);
  EXPECT_NE(refused("weights.bin", part("13", "")).find("are not there"), std::string::npos);
  EXPECT_NE(refused("weights.bin", part("9223372036854775807", "12")).find("are not there"), std::string::npos);
  EXPECT_NE(refused("weights.bin", part("99999999999999999999999", "")).find("are not there"), std::string::npos);
  EXPECT_NE(refused("weights.bin", part("-4", "12")).find("are not there"), std::string::npos);
  EXPECT_NE(refused("weights.bin", part("0", "8")).find("has 8 bytes, but its shape takes 12"), std::string::npos);
}

// One file of a few bytes that a thousand arrays ask for.
TEST_F(ExternalArrays, ThatAreTheSameBytesManyTimesAreRefused) {
  std::string more;
  for (int i = 0; i < 1000; ++i)
    more += onnx_field(5, onnx_tensor(fmt::format("array{}", i), 1, {3, 1, 1}) + onnx_field(14, 1) +
                              onnx_field(13, onnx_entry("location", "weights.bin")));
  const std::string array = onnx_tensor("array", 1, {3, 1, 1}) + onnx_field(9, bytes_of_numbers(kOnnxValues));
  EXPECT_NE(refusal_of(onnx_model(onnx_graph_with(array, more)), model_).find("the same bytes"), std::string::npos);
}

TEST(Onnx, AbsentBuildsSayHowToGetIt) {
  if (has_onnx()) GTEST_SKIP() << "this build reads ONNX files";
  EXPECT_NE(error_of([] { static_cast<void>(parse_onnx({}, "net.onnx", {})); }).find("protobuf"), std::string::npos);
}

}  // namespace
}  // namespace tide::test
