#include <gtest/gtest.h>

#include <algorithm>

#include "network/network.h"
#include "support/error_of.h"

namespace tide {
namespace {

LayerSpec spec(LayerKind kind, std::string name, std::vector<std::string> inputs, LayerOptions options = NoOptions{}) {
  LayerSpec made;
  made.kind = kind;
  made.name = std::move(name);
  made.inputs = std::move(inputs);
  made.options = std::move(options);
  return made;
}

LayerSpec input() { return spec(LayerKind::input, "in", {}, InputOptions{{1, 4, 2, 2}}); }
LayerSpec relu(std::string name, std::string from) { return spec(LayerKind::relu, std::move(name), {std::move(from)}); }
LayerSpec dense(std::string name, std::string from) {
  return spec(LayerKind::fully_connected, std::move(name), {std::move(from)}, FullyConnectedOptions{.channels = 4});
}

std::string error_of(std::vector<LayerSpec> specs) {
  return test::error_of([&] { static_cast<void>(assemble("test", std::move(specs))); });
}

TEST(Assemble, SortsAndKeepsTheOrderOfASortedList) {
  const Network network = assemble("test", {relu("c", "b"), relu("b", "a"), input(), relu("a", "in")});
  std::vector<std::string> names;
  for (const Layer& layer : network.layers) names.push_back(layer.name);
  EXPECT_EQ(names, (std::vector<std::string>{"in", "a", "b", "c"}));

  std::vector<LayerSpec> sorted{input(), relu("b", "in"), relu("a", "in"), spec(LayerKind::add, "sum", {"a", "b"})};
  const Network kept = assemble("test", sorted);
  EXPECT_EQ(kept.layers[1].name, "b");
  EXPECT_EQ(kept.layers[2].name, "a");
}

TEST(Assemble, Outputs) {
  const LayerSpec split = spec(LayerKind::split, "s", {"in"}, SplitOptions{{1, 3}});
  const Network network = assemble("test", {input(), split, spec(LayerKind::concat, "c", {"s:1", "s"})});
  EXPECT_EQ(network.layers[2].inputs[0], (Value{LayerId(1), 1}));
  EXPECT_EQ(network.layers[2].inputs[1], (Value{LayerId(1), 0}));
  EXPECT_NE(error_of({input(), split, relu("r", "s:2")}).find("'r': its input 's:2' asks for output 2"),
            std::string::npos);
  EXPECT_NE(error_of({input(), relu("r", "in:1")}).find("'r'"), std::string::npos);
  for (const char* text : {"in:", "in:x", "in:-1", "in:1x", "in:99999999999"})
    EXPECT_NE(error_of({input(), relu("r", text)}).find("number of an output"), std::string::npos) << text;
  // A colon may be part of a name, unless that is ambiguous.
  EXPECT_EQ(error_of({input(), relu("x:0", "in"), relu("r", "x:0")}), "");
  EXPECT_NE(error_of({input(), relu("in:0", "in"), relu("r", "in:0")}).find("rename"), std::string::npos);
}

TEST(Assemble, Errors) {
  EXPECT_NE(error_of({}).find("no input layer"), std::string::npos);
  EXPECT_NE(error_of({input(), relu("r", "nobody")}).find("'r': its input 'nobody'"), std::string::npos);
  EXPECT_NE(error_of({input(), relu("r", "in"), relu("r", "in")}).find("called 'r'"), std::string::npos);
  EXPECT_NE(error_of({input(), relu("r", "r")}).find("'r' takes its own output"), std::string::npos);
  EXPECT_NE(error_of({input(), relu("", "in")}).find("layer 2 has no name"), std::string::npos);
  EXPECT_NE(error_of({input(), spec(LayerKind::dropout, "d", {"in"}, DropoutOptions{.rate = 2})}).find("'d'"),
            std::string::npos);
}

TEST(Assemble, ReportsALayerOnTheCycle) {
  const std::vector<LayerSpec> specs{input(),        relu("behind", "c"), spec(LayerKind::add, "a", {"in", "c"}),
                                     relu("b", "a"), relu("c", "b"),      relu("further", "behind")};
  const std::string text = error_of(specs);
  EXPECT_NE(text.find("cycle"), std::string::npos);
  const bool on_it = std::ranges::any_of(std::vector<std::string>{"'a'", "'b'", "'c'"},
                                         [&](const std::string& name) { return text.find(name) != std::string::npos; });
  EXPECT_TRUE(on_it) << text;
}

TEST(Assemble, Sharing) {
  LayerSpec second = dense("b", "a");
  second.share = "a";
  LayerSpec first = dense("a", "r");
  const LayerSpec flat = spec(LayerKind::global_average_pool, "r", {"in"});
  const Network network = assemble("test", {second, first, flat, input()});
  EXPECT_EQ(network.layers[2].parameters, network.layers[3].parameters);
  EXPECT_EQ(network.parameters.size(), 2U);

  second.share = "nobody";
  EXPECT_NE(error_of({input(), flat, first, second}).find("'nobody'"), std::string::npos);
  second.share = "b";
  EXPECT_NE(error_of({input(), flat, first, second}).find("'b'"), std::string::npos);
  second.share.clear();
  first.share = "b";
  EXPECT_NE(error_of({input(), flat, first, second}).find("cycle"), std::string::npos);
}

TEST(Assemble, FreezesAndMirrors) {
  LayerSpec frozen = dense("f", "in");
  frozen.frozen = true;
  frozen.mirror = 3;
  const Network network = assemble("test", {input(), frozen, dense("g", "f")});
  EXPECT_TRUE(network.parameters[0].frozen);
  EXPECT_FALSE(network.parameters[2].frozen);
  EXPECT_EQ(network.layers[1].mirror, 3);
  EXPECT_EQ(network.layers[2].mirror, 0);
}

TEST(Assemble, AHundredThousandLayersBackwards) {
  std::vector<LayerSpec> specs;
  for (int i = 100'000; i > 0; --i) specs.push_back(relu(fmt::format("r{}", i), fmt::format("r{}", i - 1)));
  specs.push_back(spec(LayerKind::input, "r0", {}, InputOptions{{1, 1, 1, 1}}));
  EXPECT_EQ(assemble("deep", specs).layers.size(), 100'001U);
  specs.back() = relu("r0", "r100000");
  EXPECT_NE(error_of(specs).find("cycle"), std::string::npos);
}

}  // namespace
}  // namespace tide
