// Data and models that people bring: folders of images, masks, files of other frameworks, weights that come and go.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run_tide.h"

namespace tide::test {
namespace {

using nlohmann::json;

constexpr const char* kClasses = R"({"name": "tiny", "layers": [
  {"kind": "input", "name": "data", "channels": 3, "height": 16, "width": 16},
  {"kind": "convolution", "name": "conv", "inputs": ["data"], "channels": 8, "kernel": [3, 3], "bias": false},
  {"kind": "batch_norm", "name": "norm", "inputs": ["conv"]},
  {"kind": "activation", "name": "clip", "inputs": ["norm"], "function": "clip"},
  {"kind": "global_average_pool", "name": "pool", "inputs": ["clip"]},
  {"kind": "fully_connected", "name": "fc", "inputs": ["pool"], "channels": 2},
  {"kind": "softmax_cross_entropy", "name": "loss", "inputs": ["fc"]}]})";
constexpr const char* kMasks = R"({"name": "masks", "layers": [
  {"kind": "input", "name": "data", "channels": 3, "height": 16, "width": 16},
  {"kind": "convolution", "name": "conv", "inputs": ["data"], "channels": 21, "kernel": [3, 3], "pad": [1, 1, 1, 1]},
  {"kind": "softmax_cross_entropy", "name": "loss", "inputs": ["conv"]}]})";

class OwnData : public testing::Test {
 protected:
  OwnData() {
    for (int i = 0; i < 6; ++i) {
      copy("picture.jpg", fmt::format("photos/bright/{}.jpg", i));
      copy("mask.png", fmt::format("photos/dark/{}.png", i));
      copy("colours.png", fmt::format("street/images/{}.png", i));
      copy("mask.png", fmt::format("street/masks/{}.png", i));
    }
    write("tiny.json", kClasses);
    write("masks.json", kMasks);
  }
  void copy(const std::string& image, const std::string& to) const {
    const std::filesystem::path place = folder_.path() / to;
    std::filesystem::create_directories(place.parent_path());
    std::filesystem::copy_file(std::filesystem::path(TIDE_TEST_DATA) / "data" / "files" / image, place);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder_.path() / name).string(); }

  // What it prints, where all is well.
  [[nodiscard]] static std::string said(const std::string& words) {
    const ProgramRun run = run_tide(words);
    EXPECT_EQ(run.code, 0) << words << '\n' << run.err;
    return run.out;
  }
  [[nodiscard]] std::string train_tiny(const std::string& words) const {
    return said(fmt::format("train {} --data {} --batch 4 --epochs 8 --save {} {} {}", at("tiny.json"), at("photos"),
                            at("tiny.safetensors"), kBackend, words));
  }

  static constexpr const char* kBackend = "--backend reference";

 private:
  TemporaryFolder folder_;
};

TEST_F(OwnData, FoldersTeachTheirClassesAndPredictSaysTheirNames) {
  static_cast<void>(train_tiny("--plain --lr 0.2"));
  const json score = json::parse(said(fmt::format("eval {} --data {} --resume {} {} --json", at("tiny.json"),
                                                  at("photos"), at("tiny.safetensors"), kBackend)));
  EXPECT_EQ(score["top1"], 1.0);
  EXPECT_EQ(score["top1"], score["accuracy"]);
  const json guesses =
      json::parse(said(fmt::format("predict {} --resume {} {} {} {} --json", at("tiny.json"), at("tiny.safetensors"),
                                   at("photos/bright/0.jpg"), at("photos/dark/0.png"), kBackend)));
  ASSERT_EQ(guesses.size(), 2U);
  EXPECT_EQ(guesses[0]["classes"][0]["name"], "bright");
  EXPECT_EQ(guesses[1]["classes"][0]["name"], "dark");
  const double sum =
      guesses[0]["classes"][0]["probability"].get<double>() + guesses[0]["classes"][1]["probability"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-6);
}

// With the numbers that training was told of, which need not be said again.
TEST_F(OwnData, PredictAndEvalReadImagesAsValidationDid) {
  for (const char* told : {"", "--mean 0.3 --deviation 0.4 --resize 20"}) {
    static_cast<void>(train_tiny(fmt::format("--lr 0.02 {}", told)));
    const std::string job = fmt::format("{} --resume {} {} --json", at("tiny.json"), at("tiny.safetensors"), kBackend);
    const json score = json::parse(said(fmt::format("eval {} --data {} --validation 0 --plain", job, at("photos"))));
    std::vector<std::string> images;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(at("photos")))
      if (entry.is_regular_file()) images.push_back(entry.path().string());
    double loss = 0;
    const json guesses = json::parse(said(fmt::format("predict {} {}", job, fmt::join(images, " "))));
    for (const json& guess : guesses)
      for (const json& one : guess["classes"]) {
        const bool is_true = guess["image"].get<std::string>().find(
                                 fmt::format("/{}/", one["name"].get<std::string>())) != std::string::npos;
        if (is_true) loss -= std::log(one["probability"].get<double>()) / static_cast<double>(guesses.size());
      }
    EXPECT_GT(loss, 0);
    EXPECT_NEAR(score["loss"].get<double>(), loss, 1e-5 * loss) << told;
  }
}

// However many threads read, and however the job is cut in two.
TEST_F(OwnData, WeightsDependOnTheSeedAlone) {
  const auto weights = [&](const std::string& words) {
    return json::parse(train_tiny("--json --jitter 0.4 --mixup 0.2 " + words))["weights_hash"].get<std::string>();
  };
  const std::string whole = weights("--workers 3");
  EXPECT_EQ(weights("--workers -1"), whole);
  EXPECT_NE(weights("--workers 3 --seed 2"), whole);
  static_cast<void>(weights("--steps 7"));
  EXPECT_EQ(weights("--resume " + at("tiny.safetensors")), whole);
}

TEST_F(OwnData, MasksTeachClassesOfPixels) {
  const std::string job = fmt::format("{} --data {} --batch 2 {}", at("masks.json"), at("street"), kBackend);
  const json trained = json::parse(said(fmt::format("train {} --epochs 2 --save {} --json", job, at("m.safetensors"))));
  EXPECT_GT(trained["steps"], 0);
  const std::string text = said(fmt::format("eval {} --resume {}", job, at("m.safetensors")));
  EXPECT_NE(text.find("mean IoU"), std::string::npos) << text;
}

TEST_F(OwnData, WhatIsExportedScoresAsTheCheckpoint) {
  static_cast<void>(train_tiny(""));
  const std::string checkpoint = at("tiny.safetensors");
  const auto score = [&](const std::string& words) {
    return json::parse(said(fmt::format("eval {} --data {} {} --json", words, at("photos"), kBackend)));
  };
  const json expected = score(at("tiny.json") + " --resume " + checkpoint);
  for (const char* name : {"w.safetensors", "net.onnx"})
    static_cast<void>(said(fmt::format("export {} --resume {} --to {}", at("tiny.json"), checkpoint, at(name))));
  static_cast<void>(said(fmt::format("export {} --to {}", at("tiny.json"), at("again.json"))));
  EXPECT_EQ(score(at("again.json") + " --weights " + at("w.safetensors")), expected);
  const json onnx = score(at("net.onnx"));
  EXPECT_EQ(onnx["top1"], expected["top1"]);
  EXPECT_NEAR(onnx["loss"].get<double>(), expected["loss"].get<double>(), 1e-5);
}

// A network of other classes has all of a file but its head.
TEST_F(OwnData, AnotherHeadStartsAnewAndTheRestStaysFrozen) {
  static_cast<void>(train_tiny(""));
  const std::string weights = at("w.safetensors");
  static_cast<void>(
      said(fmt::format("export {} --resume {} --to {}", at("tiny.json"), at("tiny.safetensors"), weights)));
  std::string three = kClasses;
  three.replace(three.find("\"channels\": 2"), 13, "\"channels\": 3");
  write("three.json", three);
  const std::string job = fmt::format("train {} --data {} --batch 4 --steps 3 --weights {} {} ", at("three.json"),
                                      at("photos"), weights, kBackend);
  const ProgramRun run = run_tide(job + "--freeze conv --freeze norm --save " + at("three.safetensors"));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("start anew"), std::string::npos) << run.err;
  // The frozen layers are in the new file as they were in the old one.
  static_cast<void>(said(
      fmt::format("export {} --resume {} --to {}", at("three.json"), at("three.safetensors"), at("x.safetensors"))));
  const std::string before = file_text(weights), after = file_text(at("x.safetensors"));
  const std::size_t values = 8 * 27 * sizeof(float);
  const auto conv = [&](const std::string& text) {
    std::uint64_t length = 0;
    std::memcpy(&length, text.data(), sizeof length);
    const json header = json::parse(text.substr(8, length));
    const std::string name = header.contains("conv.weight") ? "conv.weight" : "conv/weights";
    return text.substr(8 + length + header[name]["data_offsets"][0].get<std::size_t>(), values);
  };
  EXPECT_EQ(conv(before), conv(after));
}

TEST_F(OwnData, WhatCannotBeReadIsNamed) {
  write("photos/dark/6.jpg", "no image");
  const std::string job =
      fmt::format("train {} --data {} --batch 4 --steps 6 {}", at("tiny.json"), at("photos"), kBackend);
  const ProgramRun refused = run_tide(job + " --validation 0");
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("6.jpg"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--on-bad-file skip"), std::string::npos) << refused.err;
  const ProgramRun skipped = run_tide(job + " --validation 0 --on-bad-file skip");
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_NE(skipped.err.find("6.jpg"), std::string::npos) << skipped.err;
}

TEST_F(OwnData, RefusalsSayWhatToDo) {
  write("torch.pt", std::string("PK\x03\x04", 4) + std::string(100, 'x'));
  const ProgramRun pickle = run_tide("eval digits --weights " + at("torch.pt"));
  EXPECT_EQ(pickle.code, 1);
  for (const char* word : {"torch.pt", "torch.load", "save_file", "torch.safetensors"})
    EXPECT_NE(pickle.err.find(word), std::string::npos) << word << " not in " << pickle.err;
  expect_refusal("predict " + at("tiny.json") + " " + at("photos/dark/0.png"), 1, {"--resume", "--weights"});
  expect_refusal("export digits --to net.txt", 1, {"net.txt", ".onnx"});
  expect_refusal(fmt::format("train {} --data {}", at("tiny.json"), at("nosuch")), 1, {"nosuch"});
  expect_refusal(fmt::format("train digits@10 --data {} --weights {}", at("photos"), at("nosuch.safetensors")), 1,
                 {"nosuch.safetensors"});
  expect_refusal("train digits --lr 0 --backend reference", 1, {"--lr", "positive"});
  expect_refusal("train digits --jitter 2 --backend reference", 1, {"--jitter 2", "between 0 and 1"});
}

}  // namespace
}  // namespace tide::test
