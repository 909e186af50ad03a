#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "support/error_of.h"

namespace tide {
namespace {

std::string error_of(std::string_view name, std::optional<Shape> sample = {}) {
  return test::error_of([&] { static_cast<void>(make_model(name, sample)); });
}

std::size_t count(const Network& network, LayerKind kind) {
  std::size_t number = 0;
  for (const Layer& layer : network.layers) number += layer.kind == kind ? 1 : 0;
  return number;
}

const Layer& find(const Network& network, std::string_view name) {
  for (const Layer& layer : network.layers)
    if (layer.name == name) return layer;
  throw Error("no layer '{}'", name);
}

TEST(Zoo, ParameterCounts) {
  const std::map<std::string, std::int64_t> golden = {
      {"alexnet", 62378344},
      {"vgg16", 138357544},
      {"vgg19", 143667240},
      {"resnet34", 21797672},
      {"resnet50", 25557032},
      {"resnet101", 44549160},
      {"resnet152", 60192808},
      {"inception-v3", 23834568},
      {"inception-v4", 42679816},
      {"densenet121", 7978856},
      {"resnet:3,4,6,3", 25557032},
      {"resnet18", 11689512},
      {"lenet", 431080},
      {"superneurons/resnet50", 25557032},
      {"resnext50", 25028904},
      {"wide-resnet50", 68883240},
      {"mobilenet-v2", 3504872},
      {"mobilenet-v3-large", 5483032},
      {"mobilenet-v3-small", 2542856},
      {"efficientnet-b0", 5288548},
      {"efficientnet-b1", 7794184},
      {"efficientnet-b2", 9109994},
      {"efficientnet-b3", 12233232},
      {"efficientnet-b4", 19341616},
      {"regnet-y-400mf", 4344144},
      {"regnet-y-800mf", 6432512},
      {"regnet-x-400mf", 5495976},
      {"regnet-x-800mf", 7259656},
      {"shufflenet-v2", 2278604},
      {"googlenet", 6624904},
      {"squeezenet", 1235496},
      {"unet", 31037698},
  };
  for (const auto& [name, parameters] : golden) EXPECT_EQ(make_model(name).parameter_count(), parameters) << name;
}

TEST(Zoo, EveryListedModelBuilds) {
  for (const ModelInfo& info : models()) {
    std::string name = info.name.substr(0, info.name.find(':'));
    if (info.name == "resnet:A,B,C,D") name += ":1,1,1,1";
    if (info.name == "preresnet:DEPTH") name += ":14";
    if (info.name == "lstm:LAYERS,HIDDEN,STEPS") name += ":1,8,1";
    const Network network = make_model(name);
    EXPECT_EQ(network.name, name);
    EXPECT_EQ(network.input_sample(), info.sample) << name;
    EXPECT_EQ(network.classes(), info.classes) << name;
    EXPECT_FALSE(info.description.empty());
    EXPECT_EQ(make_model(name + "@7").classes(), 7) << name;
    EXPECT_NE(make_model(name + "@7").fingerprint(), network.fingerprint());
  }
}

TEST(Zoo, AlexNetHasThePapersLayers) {
  const Network network = make_model("alexnet");
  EXPECT_EQ(network.layers.size(), 23U + 1);  // and the input
  EXPECT_EQ(find(network, "conv1").outputs[0], (Shape{1, 96, 55, 55}));
  EXPECT_EQ(find(network, "pool1").outputs[0], (Shape{1, 96, 27, 27}));
  EXPECT_EQ(find(network, "pool5").outputs[0], (Shape{1, 256, 6, 6}));
}

TEST(Zoo, VggConvolutions) {
  EXPECT_EQ(count(make_model("vgg16"), LayerKind::convolution), 13U);
  EXPECT_EQ(count(make_model("vgg19"), LayerKind::convolution), 16U);
  EXPECT_EQ(count(make_model("vgg101"), LayerKind::convolution), 98U);
  EXPECT_EQ(find(make_model("vgg101"), "pool5").outputs[0], (Shape{1, 512, 7, 7}));
}

TEST(Zoo, SuperneuronsResnetLayersAndShapes) {
  const Network network = make_model("superneurons/resnet50");
  EXPECT_EQ(network.layers.size(), 191U - 16 + 1);  // 16 forks come with the rules; and the input
  EXPECT_EQ(make_model("superneurons/resnet101").layers.size(), 378U - 33 + 1);
  EXPECT_EQ(make_model("superneurons/resnet152").layers.size(), 565U - 50 + 1);
  EXPECT_EQ(find(network, "conv1").outputs[0], (Shape{1, 64, 114, 114}));
  EXPECT_EQ(find(network, "pool1").outputs[0], (Shape{1, 64, 56, 56}));
  EXPECT_EQ(find(network, "stage2.block1.conv1").outputs[0], (Shape{1, 128, 28, 28}));
  EXPECT_EQ(find(network, "stage4.block3.relu").outputs[0], (Shape{1, 2048, 7, 7}));
}

TEST(Zoo, ResnetPutsTheMainBranchFirst) {
  const Network network = make_model("resnet50");
  EXPECT_EQ(find(network, "stage2.block1.conv1").outputs[0], (Shape{1, 128, 56, 56}));
  EXPECT_EQ(find(network, "stage2.block1.conv2").outputs[0], (Shape{1, 128, 28, 28}));
  const Layer& add = find(network, "stage2.block1.add");
  EXPECT_EQ(network.layer(add.inputs[0].layer).name, "stage2.block1.conv3.norm");
  EXPECT_EQ(network.layer(add.inputs[1].layer).name, "stage2.block1.projection.norm");
  EXPECT_EQ(network.layer(find(network, "stage2.block2.add").inputs[1].layer).name, "stage2.block1.relu");
}

TEST(Zoo, PreresnetDepths) {
  const auto units = [](std::string_view name) { return count(make_model(name), LayerKind::add); };
  EXPECT_EQ(units("preresnet:50"), 16U);
  EXPECT_EQ(units("preresnet:1001"), 333U);
  const Network deep = make_model("preresnet:200");
  EXPECT_EQ(find(deep, "stage2.unit24.add").outputs[0], (Shape{1, 512, 28, 28}));
  EXPECT_EQ(find(deep, "stage3.unit36.add").outputs[0], (Shape{1, 1024, 14, 14}));
  EXPECT_EQ(find(deep, "stage4.unit3.add").outputs[0], (Shape{1, 2048, 7, 7}));
  for (int depth = 14; depth <= 200; depth += 3) EXPECT_EQ(error_of(fmt::format("preresnet:{}", depth)), "");
  EXPECT_NE(error_of("preresnet:1000").find("998 and 1001"), std::string::npos);
  EXPECT_NE(error_of("preresnet:3").find("nearest is 14"), std::string::npos);
  EXPECT_NE(error_of("preresnet:99999999999").find("nearest is"), std::string::npos);
}

TEST(Zoo, InceptionAndDensenetShapes) {
  const Network v3 = make_model("inception-v3");
  EXPECT_EQ(find(v3, "mixed5d.concat").outputs[0], (Shape{1, 288, 35, 35}));
  EXPECT_EQ(find(v3, "mixed6e.concat").outputs[0], (Shape{1, 768, 17, 17}));
  EXPECT_EQ(find(v3, "mixed7c.concat").outputs[0], (Shape{1, 2048, 8, 8}));
  EXPECT_EQ(error_of("inception-v3", Shape{1, 3, 75, 75}), "");
  EXPECT_NE(error_of("inception-v3", Shape{1, 3, 74, 74}), "");
  const Network v4 = make_model("inception-v4");
  EXPECT_EQ(find(v4, "stem4.concat").outputs[0], (Shape{1, 384, 35, 35}));
  EXPECT_EQ(find(v4, "c3.concat").outputs[0], (Shape{1, 1536, 8, 8}));
  const Network dense = make_model("densenet121");
  EXPECT_EQ(find(dense, "block1.layer6.concat").outputs[0], (Shape{1, 256, 56, 56}));
  EXPECT_EQ(find(dense, "last.relu").outputs[0], (Shape{1, 1024, 7, 7}));
}

TEST(Zoo, FcnLabelsEveryPixel) {
  const Network network = make_model("fcn");
  EXPECT_EQ(find(network, "softmax").outputs[0], (Shape{1, 21, 224, 224}));
  EXPECT_EQ(network.labels_per_sample(), 224 * 224);
  EXPECT_EQ(find(make_model("fcn", Shape{1, 3, 64, 96}), "upscore").outputs[0], (Shape{1, 21, 64, 96}));
  EXPECT_NE(error_of("fcn", Shape{1, 3, 60, 64}).find("multiple of 32"), std::string::npos);
}

TEST(Zoo, LstmSharesItsWeightsOverTime) {
  const Network network = make_model("lstm:2,32,5");
  // Per layer four gates of weights for x and h and one bias; then the classifier.
  EXPECT_EQ(network.parameter_count(), 4 * 32 * (50 + 32 + 1) + 4 * 32 * (32 + 32 + 1) + 5000 * (32 + 1));
  EXPECT_EQ(network.labels_per_sample(), 5);
  EXPECT_EQ(network.input_sample(), (Shape{1, 250, 1, 1}));
  EXPECT_EQ(find(network, "layer1.step1.input").parameters, find(network, "layer1.step5.input").parameters);
  EXPECT_DOUBLE_EQ(find(network, "softmax.step3").as<SoftmaxOptions>().weight, 0.2);
  EXPECT_EQ(find(network, "softmax.step3").as<SoftmaxOptions>().label_offset, 2);
  EXPECT_NE(error_of("lstm:2,32,5", Shape{1, 249, 1, 1}).find("5 steps"), std::string::npos);
  EXPECT_EQ(make_model("lstm:4,1024,64").labels_per_sample(), 64);
}

TEST(Zoo, AHundredThousandLayersBuild) {
  const Network network = make_model("resnet:10,2000,8000,10");
  EXPECT_GT(network.layers.size(), 100'000U);
}

TEST(Zoo, UnknownNamesSuggestTheNearest) {
  EXPECT_NE(error_of("resnet51").find("'resnet50'"), std::string::npos);
  EXPECT_NE(error_of("inceptionv3").find("'inception-v3'"), std::string::npos);
  EXPECT_NE(error_of("").find("there is no model"), std::string::npos);
  EXPECT_NE(error_of("resnet").find("resnet:A,B,C,D"), std::string::npos);
  EXPECT_NE(error_of("vgg16:3").find("there is no model"), std::string::npos);
  EXPECT_NE(error_of(std::string(100000, 'x')).find("there is no model"), std::string::npos);
}

TEST(Zoo, BadNumbers) {
  EXPECT_NE(error_of("resnet:3,4,6").find("has 3 numbers"), std::string::npos);
  EXPECT_NE(error_of("resnet:3,4,6,0").find("positive"), std::string::npos);
  EXPECT_NE(error_of("resnet:3,4,,3").find("positive"), std::string::npos);
  EXPECT_NE(error_of("resnet:3,4,6,99999999999999999999").find("positive"), std::string::npos);
  EXPECT_NE(error_of("resnet:3,4,6,9999999999999").find("200000"), std::string::npos);
  EXPECT_NE(error_of("resnet50@").find("positive"), std::string::npos);
  EXPECT_NE(error_of("resnet50@-3").find("positive"), std::string::npos);
  EXPECT_NE(error_of("lstm:1000000,1,1000000").find("at most"), std::string::npos);
  EXPECT_NE(error_of("lstm:1,1,9223372036854775807").find("overflow"), std::string::npos);
}

TEST(Zoo, ASampleThatDoesNotFitNamesTheLayer) {
  EXPECT_NE(error_of("alexnet", Shape{1, 3, 5, 5}).find("'conv1'"), std::string::npos);
  EXPECT_NE(error_of("vgg16", Shape{1, 3, 16, 16}).find("'pool5'"), std::string::npos);
  EXPECT_NE(error_of("vgg16", Shape{2, 3, 224, 224}).find("'data'"), std::string::npos);
}

}  // namespace
}  // namespace tide
