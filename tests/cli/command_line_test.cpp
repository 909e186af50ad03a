// The program as people run it: bad input gives one clear line and the right exit code,
// good input gives what the design promises.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace {

using nlohmann::json;

struct Outcome {
  int code = -1;
  std::string out, err;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("tide_cli_") + testing::UnitTest::GetInstance()->current_test_info()->name() +
               std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~CommandLine() override { std::filesystem::remove_all(folder_); }

  Outcome tide(const std::string& arguments) {
    const std::filesystem::path out = folder_ / "out";
    const std::filesystem::path err = folder_ / "err";
    const std::string command =
        std::string(TIDE_BINARY) + " " + arguments + " > " + out.string() + " 2> " + err.string();
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(out), read_file(err)};
  }

  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  // One line on stderr that mentions `words`, nothing on stdout.
  void expect_failure(const std::string& arguments, int code, const std::vector<std::string>& words) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = tide(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("tide: ")) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    for (const std::string& word : words)
      EXPECT_NE(outcome.err.find(word), std::string::npos) << word << " not in: " << outcome.err;
  }

  std::filesystem::path folder_;
};

TEST_F(CommandLine, UnknownThings) {
  expect_failure("plan alexnt --backend null", 1, {"alexnt", "alexnet"});
  expect_failure("plan lenet --colour red", 1, {"--colour"});
  expect_failure("paln lenet", 1, {"see tide --help"});
  expect_failure("", 1, {"see tide --help"});
  expect_failure("plan", 1, {"MODEL"});
  expect_failure("plan lenet --policy magic --backend null", 1, {"magic", "liveness"});
  expect_failure("plan lenet --policy sublinear --mirror conv1 --backend null", 1, {"--mirror", "conv1"});
  expect_failure("plan lenet --policy sublinear --mirror conv9=1 --backend null", 1, {"conv9"});
  expect_failure("plan lenet --policy sublinear --weigh luck --backend null", 1, {"luck"});
  expect_failure("plan lenet --policy recursive --recursion 0 --backend null", 1, {"--recursion"});
  expect_failure("plan lenet --policy vdnn-all --algorithms magic --backend null", 1, {"magic", "fastest"});
  expect_failure("plan lenet --backend tpu", 1, {"tpu"});
  expect_failure("plan lenet --rules mine --backend null", 1, {"mine"});
  expect_failure("train lenet --optimizer adagrad --backend null", 1, {"adagrad"});
  expect_failure("train lenet --schedule never --backend null", 1, {"never"});
  expect_failure("train digits --data cifar --backend null", 1, {"cifar"});
  expect_failure("train digits --freeze nolayer --backend null", 1, {"nolayer"});
  expect_failure("plan resnet:1,2,3 --backend null", 1, {"resnet"});
  expect_failure("plan resnet:1,2,3,x --backend null", 1, {"resnet"});
  expect_failure("plan nowhere.json --backend null", 1, {"nowhere.json"});
}

TEST_F(CommandLine, ImpossibleNumbers) {
  expect_failure("plan lenet --batch 0 --backend null", 1, {"batch 0"});
  expect_failure("plan lenet --batch -3 --backend null", 1, {"batch -3"});
  expect_failure("plan lenet --batch many --backend null", 1, {"--batch"});
  expect_failure("plan vgg16 --batch 900000000000 --backend null", 1, {"overflow"});
  expect_failure("plan resnet50 --batch 99999999999999999999 --backend null", 1, {"too large"});
  expect_failure("plan lenet --memory lots --backend null", 1, {"lots"});
  expect_failure("plan lenet --memory -5 --backend null", 1, {"-5"});
  expect_failure("plan lenet --input 3x --backend null", 1, {"3x"});
  expect_failure("plan lenet --input 1x0x5 --backend null", 1, {"1x0x5"});
  expect_failure("plan lenet --input 1x28x28x --backend null", 1, {"1x28x28x"});
  expect_failure("plan lenet --input 1x2x3x4x5x6 --backend null", 1, {"1 to 5 extents"});
  expect_failure("plan lenet --input 1x2x2 --backend null", 1, {"conv"});
  expect_failure("plan lenet --input 1x3000000000x3000000000 --batch 4 --backend null", 1, {"overflow"});
  expect_failure("train digits --lr -1 --backend null", 1, {"--lr"});
  expect_failure("train digits --momentum 2 --backend null", 1, {"--momentum"});
  expect_failure("train digits --epochs 0 --backend null", 1, {"--epochs"});
  expect_failure("train digits --batch 5000 --backend null", 1, {"5000"});
  expect_failure("train digits --validation 1.5 --backend null", 1, {"1.5"});
  expect_failure("train digits --label-smoothing 1 --backend null", 1, {"--label-smoothing"});
  expect_failure("train digits --threads -2", 1, {"-2"});
}

TEST_F(CommandLine, TooSmallABudgetIsAnAnswer) {
  expect_failure("plan lenet --memory 1KiB --backend null --policy liveness", 2, {"bytes", "fc1 backward-weights"});
  expect_failure("train digits --memory 10kB --backend null", 2, {"bytes"});
  const Outcome outcome = tide("plan resnet50 --batch 8 --memory 1MiB --backend null --json");
  EXPECT_EQ(outcome.code, 2);
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["feasible"], false);
  EXPECT_GT(result["floor_bytes"].get<std::int64_t>(), 1 << 20);
  EXPECT_FALSE(result["bottleneck_task"].get<std::string>().empty());
  // The floor itself fits.
  const std::string floor = std::to_string(result["floor_bytes"].get<std::int64_t>());
  EXPECT_EQ(tide("plan resnet50 --batch 8 --backend null --memory " + floor).code, 0);
}

TEST_F(CommandLine, BadNetworkFiles) {
  const auto fails = [&](const std::string& text, const std::vector<std::string>& words) {
    expect_failure("plan " + write("net.json", text) + " --backend null", 1, words);
  };
  const std::string head = R"({"name":"n","layers":[{"kind":"input","name":"in","channels":1,"height":8,"width":8},)";
  fails("hello", {"net.json"});
  fails("", {"net.json"});
  fails(R"({"name":"n"})", {"net.json"});
  fails(head + R"({"kind":"convolutoin","name":"c","inputs":["in"],"channels":3}]})", {"convolutoin"});
  fails(head + R"({"kind":"relu","name":"a","inputs":["b"]},{"kind":"relu","name":"b","inputs":["a"]}]})", {"cycle"});
  fails(head + R"({"kind":"relu","name":"a","inputs":["nobody"]}]})", {"nobody"});
  fails(head + R"({"kind":"max_pool","name":"p","inputs":["in"],"kernel":[99,99]}]})", {"p"});
  fails(
      head +
          R"({"kind":"relu","name":"a","inputs":["in"]},{"kind":"max_pool","name":"m","inputs":["in"],"kernel":[2,2],"stride":[2,2]},)"
          R"({"kind":"add","name":"sum","inputs":["a","m"]}]})",
      {"sum"});
}

TEST_F(CommandLine, BadPlanAndCheckpointFiles) {
  expect_failure("train digits --backend null --plan " + write("p.json", "{}"), 1, {"p.json"});
  expect_failure("train digits --backend null --plan nowhere.json", 1, {"nowhere.json"});
  expect_failure("train digits --backend null --resume " + write("c.safetensors", "short"), 1, {"c.safetensors"});
  expect_failure("eval digits --backend null --resume nowhere.safetensors", 1, {"nowhere.safetensors"});

  // A real plan: good as it is, refused for another batch, refused when damaged.
  const std::string plan = (folder_ / "plan.json").string();
  ASSERT_EQ(tide("plan digits --batch 32 --backend null --save " + plan).code, 0);
  EXPECT_EQ(tide("train digits --batch 32 --steps 2 --backend null --plan " + plan).code, 0);
  expect_failure("train digits --batch 16 --steps 2 --backend null --plan " + plan, 1, {"batch=32"});
  const std::string text = read_file(plan);
  // The first `from` behind `behind`, changed.
  const auto with = [&](std::string_view behind, std::string_view from, std::string_view to) {
    const std::size_t at = text.find(from, text.find(behind));
    EXPECT_NE(at, std::string::npos) << from;
    return fmt::format("{}{}{}", text.substr(0, at), to, text.substr(at + from.size()));
  };
  const auto refused = [&](const std::string& name, const std::string& changed, const std::string& why) {
    expect_failure("train digits --batch 32 --steps 2 --backend null --plan " + write(name, changed), 1, {name, why});
  };
  refused("damaged.json", with("\"residencies\"", "[0,\"device\",", "[0,\"device\",7"), "");
  refused("strange.json", with("\"residencies\"", "[0,\"device\",", "[0,\"cellar\","), "cellar");
  refused("old.json", with("", "\"tidepool_plan\":2", "\"tidepool_plan\":1"), "version 1");
}

TEST_F(CommandLine, PlanPrintsTheGoldenFigures) {
  const Outcome outcome = tide("plan alexnet --batch 200 --rules superneurons --policy liveness --backend null --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["peak_data_bytes"], 1561702400);
  EXPECT_EQ(result["peak_step"], 32);
  EXPECT_EQ(result["live_data_tensors_at_peak"], 17);
  EXPECT_EQ(result["data_bytes"], 2295791200);
  EXPECT_EQ(result["data_tensors"], 36);
  EXPECT_EQ(result["steps"].size(), 46U);
  for (const char* key : {"model",           "batch",
                          "policy",          "rules",
                          "memory_bytes",    "feasible",
                          "numerics",        "peak_bytes",
                          "peak_task",       "max_live_data_tensors",
                          "floor_bytes",     "recomputed_tasks",
                          "offloaded_bytes", "prefetched_bytes",
                          "resting_bytes",   "phases",
                          "sub_batch",       "predicted_seconds",
                          "ideal_seconds",   "plan_seconds",
                          "check_seconds",   "classes"})
    EXPECT_TRUE(result.contains(key)) << key;
}

TEST_F(CommandLine, OtherCommandsWork) {
  for (const char* command :
       {"models", "models --json", "doctor", "summary lenet", "summary lenet --json", "--help", "--version",
        "plan --help", "compare lenet --backend null", "compare lenet --backend null --json",
        "plan lenet --inference --backend null", "eval digits --backend reference --batch 16 --validation 0.02",
        "plan lenet --backend null --memory auto"}) {
    const Outcome outcome = tide(command);
    EXPECT_EQ(outcome.code, 0) << command << ": " << outcome.err;
    EXPECT_FALSE(outcome.out.empty()) << command;
  }
  EXPECT_GE(json::parse(tide("compare lenet --backend null --json").out)["policies"].size(), 6U);
}

TEST_F(CommandLine, TrainingIsTheSameWithinABudget) {
  const std::string common = "train digits --backend reference --batch 16 --steps 3 --validation 0.02 --json ";
  const json unlimited = json::parse(tide(common + "--policy baseline").out);
  const Outcome outcome = tide(common + "--memory " + std::to_string(unlimited["peak_bytes"].get<std::int64_t>() / 2));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json managed = json::parse(outcome.out);
  EXPECT_EQ(managed["weights_hash"], unlimited["weights_hash"]);
  EXPECT_EQ(managed["peak_bytes"], managed["planned_peak_bytes"]);
  EXPECT_LT(managed["peak_bytes"].get<std::int64_t>(), unlimited["peak_bytes"].get<std::int64_t>() / 2);
}

// Cut batches train like whole ones; nobody gets them, or other statistics, without asking.
TEST_F(CommandLine, SubBatchesAreAskedFor) {
  expect_failure("plan lenet --backend null --batch 8 --sub-batch 3", 1, {"--allow reordered"});
  expect_failure("plan digits --backend null --batch 8 --sub-batch 3 --allow reordered", 1,
                 {"--allow changed", "--batch-norm exact"});
  expect_failure("plan lenet --backend null --sub-batch -1", 1, {"--sub-batch"});
  expect_failure("plan lenet --backend null --allow anything", 1, {"anything", "identical"});
  expect_failure("plan lenet --backend null --batch-norm rough", 1, {"rough", "exact"});

  const std::string common = "digits --backend reference --batch 8 --optimizer sgd ",
                    steps = " --lr 0.01 --steps 2 --validation 0.02 --json";
  const json whole = json::parse(tide("train " + common + steps).out);
  EXPECT_EQ(whole["numerics"], "identical");
  const std::string exact = "--batch-norm exact --allow reordered --sub-batch 3 ";
  const Outcome cut = tide("train " + common + exact + steps);
  ASSERT_EQ(cut.code, 0) << cut.err;
  const json result = json::parse(cut.out);
  EXPECT_EQ(result["sub_batch"], 3);
  EXPECT_EQ(result["numerics"], "reordered");
  EXPECT_NEAR(result["loss"].get<double>(), whole["loss"].get<double>(), 1e-4);
  EXPECT_EQ(json::parse(tide("train " + common + "--allow changed --sub-batch 3" + steps).out)["numerics"], "changed");
  // A saved plan of several phases runs as it was saved.
  for (const std::string& way : {exact, std::string("--allow changed --sub-batch 3 ")}) {
    const std::string file = (folder_ / "plan.json").string();
    ASSERT_EQ(tide("plan " + common + way + "--save " + file).code, 0);
    const std::string allow = way == exact ? "--allow reordered " : "--allow changed ";
    expect_failure("train " + common + "--plan " + file + steps, 1, {allow.substr(0, allow.size() - 1)});
    const Outcome loaded = tide("train " + common + allow + "--plan " + file + steps);
    ASSERT_EQ(loaded.code, 0) << loaded.err;
    EXPECT_EQ(json::parse(loaded.out)["weights_hash"],
              json::parse(tide("train " + common + way + steps).out)["weights_hash"]);
  }
}

TEST_F(CommandLine, AnInterruptSavesTheCheckpoint) {
  const std::string checkpoint = (folder_ / "c.safetensors").string();
  const std::filesystem::path err = folder_ / "err";
  // timeout sends SIGINT to a run that would take far longer.
  const std::string command = std::string("timeout -s INT 2 ") + TIDE_BINARY +
                              " train digits --backend reference --batch 16 --epochs 100000 --validation 0.02 --save " +
                              checkpoint + " > /dev/null 2> " + err.string();
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_TRUE(std::filesystem::exists(checkpoint)) << read_file(err);
  EXPECT_NE(read_file(err).find("interrupted"), std::string::npos);
  EXPECT_EQ(tide("eval digits --backend reference --batch 16 --validation 0.02 --resume " + checkpoint).code, 0);
}

// The floor of sub-batches is made of what is tried at every budget.
TEST_F(CommandLine, TheFloorOfSubBatchesIsEnough) {
  const std::string common = "plan alexnet --batch 37 --policy vdnn+ --allow reordered --device k40c --json --memory ";
  const auto floor = json::parse(tide(common + "1KiB").out)["floor_bytes"].get<std::int64_t>();
  EXPECT_EQ(tide(common + std::to_string(floor)).code, 0);
  EXPECT_EQ(tide(common + std::to_string(floor - 1)).code, 2);
}

// Its own plans and those of the other policies race each other.
TEST_F(CommandLine, ThePlanIsTheSameEveryTime) {
  const auto plan = [this] {
    return json::parse(tide("plan digits --memory 2MiB --json").out)["peak_bytes"].get<std::int64_t>();
  };
  const std::int64_t first = plan();
  for (int k = 0; k < 10; ++k) EXPECT_EQ(plan(), first);
}

TEST_F(CommandLine, EmptyValuesAreRefused) {
  for (const char* option : {"--memory", "--threads", "--device", "--save", "--batch", "--replacement"})
    expect_failure(std::string("plan digits ") + option + " ''", 1, {option, "empty"});
  expect_failure("eval digits --resume ''", 1, {"--resume", "empty"});
}

}  // namespace
