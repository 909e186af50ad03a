// Every kind of data that can be named, from files made here; and that what is read is of the seed alone.
#include "data/open.h"

#include <cmath>
#include <set>
#include <thread>

#include "data/ahead.h"
#include "data/image_files.h"
#include "support/error_of.h"

namespace tide::test {
namespace {

namespace fs = std::filesystem;

struct Sample {
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  bool operator==(const Sample&) const = default;
};

Sample read(const Dataset& data, std::int64_t index) {
  Sample sample{std::vector<float>(static_cast<std::size_t>(data.sample().per_sample()), std::nanf("")),
                std::vector<std::int32_t>(static_cast<std::size_t>(data.labels_per_sample()), -7)};
  data.read(index, sample.values, sample.labels);
  for (const float value : sample.values) EXPECT_TRUE(std::isfinite(value));
  return sample;
}

const Shape kSample{1, 3, 8, 8};

DataRequest request(const fs::path& path, std::int64_t classes, const Shape& sample = kSample) {
  DataRequest made{.path = path.string(), .sample = sample, .classes = classes};
  made.threads = -1;
  return made;
}

// Two classes of three pictures each.
void fill_with_classes(const TemporaryFolder& folder, const std::string& part = "") {
  for (const char* name : {"cats/a.jpg", "cats/b.jpg", "cats/more/c.jpg"}) folder.add(part + name, "picture.jpg");
  for (const char* name : {"dogs/a.png", "dogs/b.png", "dogs/c.PNG"}) folder.add(part + name, "colours.png");
}

TEST(OpenData, AFolderForEachClass) {
  const TemporaryFolder folder("classes");
  fill_with_classes(folder);
  const Split data = open_data(request(folder.path(), 2));
  EXPECT_EQ(data.train->class_names(), (std::vector<std::string>{"cats", "dogs"}));
  ASSERT_NE(data.validation, nullptr);
  EXPECT_EQ(data.train->size() + data.validation->size(), 6);
  EXPECT_TRUE(data.train->varies());
  EXPECT_FALSE(data.validation->varies());
  std::multiset<std::int32_t> labels;
  for (const DatasetPtr& part : {data.train, data.validation})
    for (std::int64_t i = 0; i < part->size(); ++i) labels.insert(read(*part, i).labels.at(0));
  EXPECT_EQ(labels, (std::multiset<std::int32_t>{0, 0, 0, 1, 1, 1}));
}

TEST(OpenData, PartsOfItsOwnAreTaken) {
  const TemporaryFolder folder("parts");
  fill_with_classes(folder, "train/");
  folder.add("val/dogs/z.png", "colours.png");
  const Split data = open_data(request(folder.path(), 2));
  EXPECT_EQ(data.train->size(), 6);
  ASSERT_EQ(data.validation->size(), 1);
  EXPECT_EQ(read(*data.validation, 0).labels.at(0), 1);  // a class has the same number in both
  folder.add("val/birds/z.png", "colours.png");
  EXPECT_NE(error_of([&] { (void)open_data(request(folder.path(), 3)); }).find("birds"), std::string::npos);
}

TEST(OpenData, MoreClassesThanTheNetworkHasAreRefused) {
  const TemporaryFolder folder("many");
  fill_with_classes(folder);
  EXPECT_NE(error_of([&] { (void)open_data(request(folder.path(), 1)); }).find("@2"), std::string::npos);
}

TEST(OpenData, ATarFileHasTheSameSamplesAsItsFiles) {
  const TemporaryFolder folder("tar");
  const std::string picture = text_of(bytes_of_file(image_file("picture.jpg")));
  const std::string colours = text_of(bytes_of_file(image_file("colours.png")));
  write_bytes(folder.path() / "all.tar", tar_member("0001.jpg", picture) + tar_member("0001.cls", "1\n") +
                                             tar_member("0002.png", colours) + tar_member("0002.cls", "0") +
                                             std::string(1024, '\0'));
  DataRequest wanted = request(folder.path() / "all.tar", 2);
  wanted.validation = 0;
  wanted.altered = false;
  const Split tar = open_data(wanted);
  ASSERT_EQ(tar.train->size(), 2);
  EXPECT_EQ(read(*tar.train, 0).labels.at(0), 1);
  EXPECT_EQ(read(*tar.train, 1).labels.at(0), 0);
  folder.add("files/a/picture.jpg", "picture.jpg");
  wanted.path = (folder.path() / "files").string();
  EXPECT_EQ(read(*open_data(wanted).train, 0).values, read(*tar.train, 0).values);
}

TEST(OpenData, CifarsRecords) {
  const TemporaryFolder folder("cifar");
  std::string records;
  for (int i = 0; i < 3; ++i) {
    records += static_cast<char>(i + 4);
    for (int channel = 0; channel < 3; ++channel) records += std::string(1024, static_cast<char>(40 * channel + i));
  }
  write_bytes(folder.path() / "data_batch_1.bin", records);
  write_bytes(folder.path() / "test_batch.bin", records.substr(0, 3073));
  DataRequest wanted = request(folder.path(), 10, Shape{1, 3, 32, 32});
  wanted.altered = false;
  wanted.normalization = Normalization{};
  const Split data = open_data(wanted);
  EXPECT_EQ(data.train->size(), 3);
  EXPECT_EQ(data.validation->size(), 1);
  const Sample last = read(*data.train, 2);
  EXPECT_EQ(last.labels.at(0), 6);
  for (std::size_t channel = 0; channel < 3; ++channel)
    EXPECT_FLOAT_EQ(last.values[channel], static_cast<float>(40 * channel + 2) / 255);
  write_bytes(folder.path() / "data_batch_2.bin", "short");
  EXPECT_NE(error_of([&] { (void)open_data(wanted); }).find("3073"), std::string::npos);
}

TEST(OpenData, MnistsFiles) {
  const TemporaryFolder folder("mnist");
  std::string pixels = big_endian(0x803) + big_endian(2) + big_endian(4) + big_endian(4);
  for (int i = 0; i < 32; ++i) pixels += static_cast<char>(i * 8);
  write_bytes(folder.path() / "train-images-idx3-ubyte", pixels);
  write_bytes(folder.path() / "train-labels-idx1-ubyte", big_endian(0x801) + big_endian(2) + "\x03\x07");
  DataRequest wanted = request(folder.path(), 10, Shape{1, 1, 4, 4});
  wanted.validation = 0;
  wanted.normalization = Normalization{};
  const Split data = open_data(wanted);
  ASSERT_EQ(data.train->size(), 2);
  const Sample second = read(*data.train, 1);
  EXPECT_EQ(second.labels.at(0), 7);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_FLOAT_EQ(second.values[i], static_cast<float>((16 + i) * 8) / 255) << i;
}

std::string floats(const std::vector<float>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}

TEST(OpenData, ArraysOfNumbers) {
  const TemporaryFolder folder("arrays");
  std::vector<float> x(2 * 2 * 3 * 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  write_bytes(folder.path() / "x.npy", npy("<f4", "(2, 2, 3, 3)", floats(x)));
  write_bytes(folder.path() / "y.npy", npy("<f4", "(2,)", floats({1, 0})));
  DataRequest wanted = request(folder.path(), 2, Shape{1, 2, 3, 3});
  wanted.validation = 0;
  const Split data = open_data(wanted);
  const Sample one = read(*data.train, 0), other = read(*data.train, 1);
  const Sample& second = one.labels.at(0) == 0 ? one : other;
  EXPECT_EQ(one.labels.at(0) + other.labels.at(0), 1);
  // Channels first in the file, last in a step.
  for (std::size_t c = 0; c < 2; ++c)
    for (std::size_t p = 0; p < 9; ++p) EXPECT_EQ(second.values[p * 2 + c], static_cast<float>(18 + c * 9 + p));
  wanted.path = (folder.path() / "x.npy").string() + "," + (folder.path() / "none.npy").string();
  EXPECT_NE(error_of([&] { (void)open_data(wanted); }).find("none.npy"), std::string::npos);
}

TEST(OpenData, ImagesWithMasks) {
  const TemporaryFolder folder("masks");
  const std::int64_t side = 8;
  folder.add("images/one.png", "mask.png");
  folder.add("masks/one.png", "mask.png");
  DataRequest wanted = request(folder.path(), 256, Shape{1, 3, side, side});
  wanted.validation = 0;
  wanted.altered = false;
  const Split data = open_data(wanted);
  EXPECT_TRUE(data.train->has_gaps());
  EXPECT_EQ(data.train->labels_per_sample(), side * side);
  for (const std::int32_t label : read(*data.train, 0).labels) EXPECT_TRUE(label >= -1 && label < 255) << label;
  folder.add("images/two.png", "mask.png");
  EXPECT_NE(error_of([&] { (void)open_data(wanted); }).find("two.png"), std::string::npos);
}

TEST(OpenData, WhatIsNotThereIsNamed) {
  EXPECT_NE(error_of([] { (void)open_data(request("/nowhere/at/all", 2)); }).find("/nowhere/at/all"),
            std::string::npos);
  const TemporaryFolder folder("empty");
  EXPECT_NE(error_of([&] { (void)open_data(request(folder.path(), 2)); }).find("a folder for each class"),
            std::string::npos);
}

// Everything that is random, at once.
DataRequest varied(const TemporaryFolder& folder) {
  DataRequest wanted = request(folder.path(), 2);
  wanted.jitter = 0.4;
  wanted.mixup = 0.3;
  return wanted;
}

std::vector<Sample> passes(const Dataset& data, std::int64_t count) {
  std::vector<Sample> samples;
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < count * data.size(); ++i) order.push_back(i);
  data.expect(order);
  for (const std::int64_t index : order) samples.push_back(read(data, index));
  return samples;
}

TEST(OpenData, WhatIsReadIsOfTheSeedAloneAndNotOfTheThreads) {
  const TemporaryFolder folder("threads");
  fill_with_classes(folder);
  DataRequest wanted = varied(folder);
  const std::vector<Sample> alone = passes(*open_data(wanted).train, 4);
  for (const int threads : {1, 2, 7}) {
    wanted.threads = threads;
    for (const std::int64_t ahead : {1, 3, 64}) {
      wanted.ahead = ahead;
      EXPECT_EQ(passes(*open_data(wanted).train, 4), alone) << threads << " threads, " << ahead << " ahead";
    }
  }
  wanted.seed = 2;
  EXPECT_NE(passes(*open_data(wanted).train, 4), alone);
}

TEST(OpenData, AnyPlaceCanBeReadFirst) {
  const TemporaryFolder folder("resumed");
  fill_with_classes(folder);
  const Split whole = open_data(varied(folder));
  const std::vector<Sample> samples = passes(*whole.train, 3);
  DataRequest again = varied(folder);
  again.threads = 2;
  const Split resumed = open_data(again);
  const std::int64_t begin = whole.train->size() + 2;  // in the middle of the second pass
  std::vector<std::int64_t> order;
  for (std::int64_t i = begin; i < 3 * whole.train->size(); ++i) order.push_back(i);
  resumed.train->expect(order);
  for (const std::int64_t index : order)
    EXPECT_EQ(read(*resumed.train, index), samples[static_cast<std::size_t>(index)]) << index;
}

TEST(OpenData, ABadFileIsNamedAndSkippedOrRefused) {
  const TemporaryFolder folder("bad");
  fill_with_classes(folder);
  write_bytes(folder.path() / "cats" / "b.jpg", "\xFF\xD8\xFF and nothing more");
  DataRequest wanted = request(folder.path(), 2);
  wanted.validation = 0;
  const auto read_all = [&] {
    for (const Sample& sample : passes(*open_data(wanted).train, 2)) EXPECT_FALSE(sample.values.empty());
  };
  const std::string refused = error_of(read_all);
  EXPECT_NE(refused.find("b.jpg"), std::string::npos) << refused;
  EXPECT_NE(refused.find("--on-bad-file skip"), std::string::npos) << refused;
  std::vector<std::string> reported;
  wanted.on_bad_file = OnBadFile::skip;
  wanted.report = [&](const std::string& what) { reported.push_back(what); };
  read_all();
  ASSERT_EQ(reported.size(), 1U);  // once, however often it is read
  EXPECT_NE(reported[0].find("b.jpg"), std::string::npos);
}

}  // namespace
}  // namespace tide::test
