// Profiles: what makes two tasks the same, the file, and the model that answers from it.
#include "cost/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <set>

#include "network/builder.h"
#include "step/build.h"

namespace tide {
namespace {

Step small_step(std::int64_t batch = 2) {
  Builder net("small");
  Value x = net.input({1, 4, 8, 8});
  for (int i = 0; i < 3; ++i)
    x = net.batch_norm(net.convolution(x, {.channels = 4, .window = Window::square(3, 1, 1)}));
  x = net.max_pool(x, {.window = Window::square(2, 2)}, "pool2");
  x = net.max_pool(x, {.window = Window::square(3, 1, 1)}, "pool3");
  x = net.max_pool(x, {.window = Window::square(1, 1)}, "pool1");
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 3}));
  StepOptions options;
  options.batch = batch;
  Step step = build_step(std::make_shared<const Network>(std::move(net).build()), options);
  step.backend = "some backend";
  return step;
}

TaskId task_named(const Step& step, std::string_view name) {
  for (std::size_t t = 0; t < step.tasks.size(); ++t)
    if (task_name(step, TaskId(t)) == name) return TaskId(t);
  throw Error("there is no task '{}'", name);
}

std::string signature(const Step& step, std::string_view task) { return signature_of(step, task_named(step, task), 0); }

// The n-th task of a kind on layers of a kind.
TaskId nth(const Step& step, LayerKind layer, TaskKind kind, int n) {
  for (std::size_t t = 0; t < step.tasks.size(); ++t)
    if (step.layer_kind(step.tasks[t]) == layer && step.tasks[t].kind == kind && n-- == 0) return TaskId(t);
  throw Error("there is no such task");
}

TEST(Signature, IsEqualForTheSameKernelOnTheSameShapes) {
  const Step step = small_step();
  const auto convolution = [&](TaskKind kind, int n) {
    return signature_of(step, nth(step, LayerKind::convolution, kind, n), 0);
  };
  EXPECT_EQ(convolution(TaskKind::forward, 0), convolution(TaskKind::forward, 2));
  EXPECT_EQ(convolution(TaskKind::forward, 0),
            "convolution forward x=2x4x8x8 weight=4x4x3x3 bias=1x4x1x1 >y=2x4x8x8, default");
  EXPECT_NE(convolution(TaskKind::backward_data, 0), convolution(TaskKind::backward_weights, 0));
  const Step larger = small_step(3);
  EXPECT_NE(signature_of(larger, nth(larger, LayerKind::convolution, TaskKind::forward, 0), 0),
            convolution(TaskKind::forward, 0));
}

// Pools of one shape with other windows do other work.
TEST(Signature, KnowsTheWindowOfAPool) {
  const Step step = small_step();
  EXPECT_NE(signature(step, "pool3 forward"), signature(step, "pool1 forward"));
}

TEST(Signature, OfAReplayIsItsForwardTasksWhereOperandsAreTheSame) {
  const Step step = small_step();
  const TaskId convolution = nth(step, LayerKind::convolution, TaskKind::forward, 1);
  EXPECT_EQ(signature_of(step, step.replay_of[convolution.index()], 0), signature_of(step, convolution, 0));
  const TaskId norm = nth(step, LayerKind::batch_norm, TaskKind::forward, 0);  // a replay reads what was saved
  EXPECT_NE(signature_of(step, step.replay_of[norm.index()], 0), signature_of(step, norm, 0));
}

Profile profile_of(const Step& step) {
  Profile profile{machine_name(), step.backend, {2e9, 1e-5}, {4e9, 2e-5}, {}};
  for (std::size_t t = 0; t < step.ordered_tasks; ++t)
    profile.task_seconds[signature_of(step, TaskId(t), 0)] =
        1e-3 * static_cast<double>(profile.task_seconds.size() + 1);
  return profile;
}

TEST(ProfileModel, AnswersWhatWasMeasured) {
  const Step step = small_step();
  const Profile profile = profile_of(step);
  const ProfileModel model({profile});
  for (std::size_t t = 0; t < step.ordered_tasks; ++t)
    EXPECT_EQ(model.task_seconds(step, TaskId(t), 0), profile.task_seconds.at(signature_of(step, TaskId(t), 0)));
  // Not measured itself, so it costs what its forward task does.
  const TaskId norm = nth(step, LayerKind::batch_norm, TaskKind::forward, 0);
  EXPECT_EQ(model.task_seconds(step, step.replay_of[norm.index()], 0), model.task_seconds(step, norm, 0));
  EXPECT_EQ(model.missing(), 0);
}

TEST(ProfileModel, AsksTheRooflineForTheRestAndCounts) {
  const Step step = small_step(), larger = small_step(3);
  const ProfileModel model({profile_of(step)});
  const TaskId convolution = nth(larger, LayerKind::convolution, TaskKind::forward, 0);
  EXPECT_EQ(model.task_seconds(larger, convolution, 0),
            RooflineModel(generic_cpu()).task_seconds(larger, convolution, 0));
  EXPECT_EQ(model.missing(), 1);
  Step elsewhere = small_step();
  elsewhere.backend = "another backend";
  static_cast<void>(model.task_seconds(elsewhere, TaskId(0), 0));
  EXPECT_EQ(model.missing(), 2);
}

TEST(ProfileModel, PrefersThisMachine) {
  const Step step = small_step();
  Profile here = profile_of(step), there = here;
  there.machine = "another machine";
  for (auto& [name, seconds] : there.task_seconds) seconds *= 7;
  there.out.bytes_per_second = 1;
  const ProfileModel model({there, here});
  EXPECT_EQ(model.task_seconds(step, TaskId(0), 0), here.task_seconds.at(signature_of(step, TaskId(0), 0)));
  EXPECT_DOUBLE_EQ(model.copy_seconds(Bytes(2'000'000'000), Tier::device, Tier::host), 1 + 1e-5);
}

TEST(ProfileModel, CopiesGoBothWaysAtTheirOwnSpeed) {
  const std::vector<Profile> profiles{profile_of(small_step())};
  const ProfileModel model(profiles), throttled(profiles, 1e9), unthrottled(profiles, 1e12);
  const Bytes bytes(4'000'000'000);
  EXPECT_DOUBLE_EQ(model.copy_seconds(bytes, Tier::device, Tier::host), 2 + 1e-5);
  EXPECT_DOUBLE_EQ(model.copy_seconds(bytes, Tier::host, Tier::device), 1 + 2e-5);
  EXPECT_DOUBLE_EQ(throttled.copy_seconds(bytes, Tier::device, Tier::host), 4 + 1e-5);
  EXPECT_DOUBLE_EQ(throttled.copy_seconds(bytes, Tier::host, Tier::device), 4 + 2e-5);
  EXPECT_DOUBLE_EQ(unthrottled.copy_seconds(bytes, Tier::host, Tier::device), 1 + 2e-5)
      << "a throttle makes nothing faster";
  EXPECT_EQ(model.copy_seconds(bytes, Tier::host, Tier::disk),
            RooflineModel(generic_cpu()).copy_seconds(bytes, Tier::host, Tier::disk));
}

void expect_equal(const Profile& a, const Profile& b) {
  EXPECT_EQ(a.machine, b.machine);
  EXPECT_EQ(a.backend, b.backend);
  EXPECT_EQ(a.out.bytes_per_second, b.out.bytes_per_second);
  EXPECT_EQ(a.in.latency_seconds, b.in.latency_seconds);
  EXPECT_EQ(a.task_seconds, b.task_seconds);
}

TEST(ProfileFile, GivesBackWhatWasWritten) {
  Profile first = profile_of(small_step()), second = profile_of(small_step(5));
  second.machine = "a \"quoted\" machine";
  const std::vector<Profile> read = profiles_from_json(profiles_to_json(std::vector<Profile>{first, second}));
  ASSERT_EQ(read.size(), 2U);
  expect_equal(read[0], first);
  expect_equal(read[1], second);
}

TEST(ProfileFile, SavingAddsToIt) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("tide_profile_{}.json", ::getpid());
  const Step step = small_step();
  Profile first = profile_of(step), again = profile_of(step), other = profile_of(small_step(5));
  save_profile(first, path);
  for (auto& [name, seconds] : again.task_seconds) seconds *= 2;
  again.task_seconds.erase(again.task_seconds.begin());
  save_profile(again, path);
  other.backend = "another backend";
  save_profile(other, path);
  const std::vector<Profile> read = read_profiles(path);
  ASSERT_EQ(read.size(), 2U);
  Profile merged = again;
  merged.task_seconds.insert(*first.task_seconds.begin());
  expect_equal(read[0], merged);
  expect_equal(read[1], other);
  EXPECT_EQ(ProfileModel(read_profiles(path)).task_seconds(step, TaskId(0), 0),
            merged.task_seconds.at(signature_of(step, TaskId(0), 0)));
  std::filesystem::remove(path);
}

TEST(ProfileFile, RefusesWhatIsNone) {
  const auto error = [](const std::string& text) -> std::string {
    try {
      static_cast<void>(profiles_from_json(text));
    } catch (const Error& caught) {
      return caught.what();
    }
    return "";
  };
  const std::string good = profiles_to_json(std::vector<Profile>{profile_of(small_step())});
  EXPECT_EQ(error(good), "");
  const auto with = [&](const std::string& what, const std::string& by) {
    std::string text = good;
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), by);
  };
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string("[1]"), good.substr(0, good.size() / 2),
        with("\"tidepool_profile\": 1", "\"tidepool_profile\": 2"),
        with("\"bytes_per_second\": 2000000000.0", "\"bytes_per_second\": 0"), with("2000000000.0", "-1"),
        with("2000000000.0", "\"fast\""), with("\"machine\"", "\"engine\""),
        std::string(R"({"tidepool_profile": 1, "profiles": []})")}) {
    EXPECT_NE(error(bad), "") << bad.substr(0, 80);
    EXPECT_EQ(error(bad).find('\n'), std::string::npos);
  }
  EXPECT_THROW(static_cast<void>(read_profiles("/nowhere/profile.json")), Error);
}

}  // namespace
}  // namespace tide
