#include "formats/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>

#include "base/error.h"
#include "support/temporary_file.h"

namespace tide {
namespace {

using test::TemporaryFile;

std::string length_bytes(std::uint64_t length) {
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes;
}

// A file of this header and so many bytes of data.
std::string file_of(const std::string& header, std::size_t data) {
  return length_bytes(header.size()) + header + std::string(data, '\1');
}

std::string error_of_file(const std::string& content) {
  const TemporaryFile file("damaged.safetensors");
  std::ofstream(file.path(), std::ios::binary) << content;
  try {
    static_cast<void>(read_safetensors(file.path()));
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(file.path().string()))
        << "does not name the file: " << error.what();
    return error.what();
  }
  return "";
}

bool same(const SafeTensors& a, const SafeTensors& b) {
  if (a.metadata != b.metadata || a.tensors.size() != b.tensors.size()) return false;
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    const SafeTensor &x = a.tensors[i], &y = b.tensors[i];
    if (x.name != y.name || x.shape != y.shape || x.values.size() != y.values.size()) return false;
    // By bits: a NaN must survive too.
    if (!x.values.empty() && std::memcmp(x.values.data(), y.values.data(), x.values.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

SafeTensors example() {
  const float inf = std::numeric_limits<float>::infinity();
  return {{{"format", "test"}, {"a \"key\"", "line\nbreak \xc3\xa9"}},
          {{"zoo.weight", {2, 3}, {1, -2, 0.1F, std::nanf("7"), -0.0F, inf}},
           {"a.scalar", {}, {42}},
           {"empty", {3, 0, 2}, {}},
           {"b \"quoted\" \xc3\xa9", {1, 1, 1, 1, 2}, {std::numeric_limits<float>::denorm_min(), -inf}}}};
}

TEST(Safetensors, SurviveARoundTrip) {
  const TemporaryFile file("round_trip.safetensors");
  for (const SafeTensors& content : {example(), SafeTensors{}, SafeTensors{{}, {{"x", {0}, {}}}}}) {
    write_safetensors(file.path(), content);
    EXPECT_TRUE(same(read_safetensors(file.path()), content));
  }
  EXPECT_FALSE(std::filesystem::exists(file.path().string() + ".part"));
}

TEST(Safetensors, DataStartsAligned) {
  const TemporaryFile file("aligned.safetensors");
  write_safetensors(file.path(), example());
  std::ifstream in(file.path(), std::ios::binary);
  std::uint64_t length = 0;
  in.read(reinterpret_cast<char*>(&length), sizeof length);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(std::filesystem::file_size(file.path()), 8 + length + 9 * sizeof(float));
}

// As the format's own library writes them: no metadata, spaces behind, any order of keys.
TEST(Safetensors, ReadsWhatOthersWrite) {
  const std::string header = R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},)"
                             R"("a":{"data_offsets":[0,8],"shape":[2,1],"dtype":"F32"}}   )";
  const TemporaryFile file("foreign.safetensors");
  std::ofstream(file.path(), std::ios::binary) << file_of(header, 12);
  const SafeTensors content = read_safetensors(file.path());
  ASSERT_EQ(content.tensors.size(), 2U);
  EXPECT_EQ(content.tensors[0].name, "a");
  EXPECT_EQ(content.tensors[0].shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(content.tensors[1].values.size(), 1U);
}

TEST(Safetensors, ManyTensors) {
  SafeTensors content;
  for (int i = 0; i < 20000; ++i)
    content.tensors.push_back({fmt::format("layer{}.weight", i), {1}, {static_cast<float>(i)}});
  const TemporaryFile file("many.safetensors");
  write_safetensors(file.path(), content);
  EXPECT_TRUE(same(read_safetensors(file.path()), content));
}

struct Damage {
  const char* name;
  std::string content;
  const char* message;
  friend std::ostream& operator<<(std::ostream& out, const Damage& c) { return out << c.name; }
};

std::string entry(const std::string& fields) { return R"({"w":{)" + fields + "}}"; }

std::vector<Damage> damages() {
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  const auto with = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return entry(fmt::format(R"("dtype":{},"shape":{},"data_offsets":{})", dtype, shape, offsets));
  };
  const auto two = [](const std::string& first, const std::string& second) {
    const std::string vector = R"({"dtype":"F32","shape":[2],"data_offsets":)";
    return R"({"v":)" + vector + first + R"(},"w":)" + vector + second + "}}";
  };
  return {
      {"Empty", "", "too short"},
      {"SevenBytes", "1234567", "too short"},
      {"LengthOnly", length_bytes(8), "header does not fit"},
      {"HeaderLongerThanTheFile", length_bytes(1000) + entry(good), "header does not fit"},
      {"HeaderOf2To64", length_bytes(~std::uint64_t{0}) + entry(good), "header does not fit"},
      {"HeaderOf2To63", length_bytes(std::uint64_t{1} << 63) + entry(good), "header does not fit"},
      {"NoHeader", file_of("", 0), "not JSON"},
      {"NotJson", file_of("hello, world", 8), "not JSON"},
      {"TruncatedJson", file_of(R"({"w":{"dtype":"F32")", 8), "not JSON"},
      {"TrailingText", file_of(entry(good) + " x", 8), "not JSON"},
      {"BinaryHeader", file_of(std::string("\xff\xfe\0\x01", 4), 8), "not JSON"},
      {"HeaderIsAList", file_of("[1,2]", 8), "no object"},
      {"HeaderIsANumber", file_of("3", 0), "no object"},
      {"DeeplyNested", file_of(std::string(100000, '['), 0), "not JSON"},
      {"EntryIsANumber", file_of(R"({"w":3})", 8), "no object"},
      {"DuplicateTensor", file_of(fmt::format(R"({{"w":{{{}}},"w":{{{}}}}})", good, good), 8), "twice"},
      {"DuplicateField", file_of(entry(good + R"(,"shape":[2])"), 8), "twice"},
      {"UnknownField", file_of(entry(good + R"(,"extra":1)"), 8), "unknown field"},
      {"NoType", file_of(entry(R"("shape":[2],"data_offsets":[0,8])"), 8), "the unknown type"},
      {"NoShape", file_of(entry(R"("dtype":"F32","data_offsets":[0,4])"), 4), "no shape"},
      {"NoOffsets", file_of(entry(R"("dtype":"F32","shape":[2])"), 8), "outside the file"},
      {"UnknownType", file_of(with(R"("F4")", "[4]", "[0,8]"), 8), "the unknown type"},
      {"HalfPrecisionOfAnotherSize", file_of(with(R"("F16")", "[2]", "[0,8]"), 8), "not its shape's"},
      {"TypeIsANumber", file_of(with("32", "[2]", "[0,8]"), 8), "must be a text"},
      {"TypeWithNewline", file_of(with(R"("F\n32")", "[2]", "[0,8]"), 8), "control"},
      {"ShapeIsANumber", file_of(with(R"("F32")", "2", "[0,8]"), 8), "must be a list"},
      {"ShapeOfTexts", file_of(with(R"("F32")", R"(["2"])", "[0,8]"), 8), "whole numbers"},
      {"FractionalShape", file_of(with(R"("F32")", "[2.5]", "[0,8]"), 8), "whole numbers"},
      {"NegativeExtents", file_of(with(R"("F32")", "[-1,-2]", "[0,8]"), 8), "negative"},
      {"ShapeOf2To63", file_of(with(R"("F32")", "[9223372036854775808]", "[0,8]"), 8), "whole numbers"},
      {"ShapeOverflows", file_of(with(R"("F32")", "[4611686018427387904,4611686018427387904]", "[0,8]"), 8),
       "not its shape's"},
      // 2^62 x 4 bytes is 0 in 64 bits.
      {"ShapeWrapsToZero", file_of(with(R"("F32")", "[4611686018427387904]", "[0,0]"), 0), "not its shape's"},
      {"HugeShape", file_of(with(R"("F32")", "[1000000000000]", "[0,8]"), 8), "not its shape's"},
      {"HugeShapeAndOffsets", file_of(with(R"("F32")", "[1000000000000]", "[0,4000000000000]"), 8), "outside the file"},
      {"SmallerShape", file_of(with(R"("F32")", "[1]", "[0,8]"), 8), "not its shape's"},
      {"NegativeBegin", file_of(with(R"("F32")", "[2]", "[-8,0]"), 8), "outside the file"},
      {"BackwardOffsets", file_of(with(R"("F32")", "[2]", "[8,0]"), 8), "outside the file"},
      {"OneOffset", file_of(with(R"("F32")", "[2]", "[8]"), 8), "outside the file"},
      {"ThreeOffsets", file_of(with(R"("F32")", "[2]", "[0,8,16]"), 8), "outside the file"},
      {"EndBehindTheFile", file_of(with(R"("F32")", "[2]", "[0,8]"), 7), "outside the file"},
      {"BeginBehindTheFile", file_of(with(R"("F32")", "[0]", "[9,9]"), 8), "outside the file"},
      {"OffsetsOf2To63", file_of(with(R"("F32")", "[2]", "[9223372036854775808,9223372036854775816]"), 8),
       "whole numbers"},
      {"Overlap", file_of(two("[0,8]", "[4,12]"), 12), "overlaps"},
      {"SameBytesTwice", file_of(two("[0,8]", "[0,8]"), 8), "overlaps"},
      {"HoleBetween", file_of(two("[0,8]", "[12,20]"), 20), "belong to none"},
      {"HoleBefore", file_of(with(R"("F32")", "[2]", "[4,12]"), 12), "belong to none"},
      {"BytesBehind", file_of(entry(good), 12), "behind its last tensor"},
      {"MetadataIsAText", file_of(R"({"__metadata__":"x"})", 0), "metadata"},
      {"MetadataOfNumbers", file_of(R"({"__metadata__":{"steps":3}})", 0), "no string"},
      {"NumberTooLarge", file_of(with(R"("F32")", "[1e999]", "[0,8]"), 8), "too large"},
  };
}

class DamagedSafetensors : public testing::TestWithParam<Damage> {};

TEST_P(DamagedSafetensors, AreRefusedInOneLine) {
  const std::string error = error_of_file(GetParam().content);
  EXPECT_NE(error.find(GetParam().message), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  EXPECT_LT(error.size(), 400U) << error;
}

INSTANTIATE_TEST_SUITE_P(All, DamagedSafetensors, testing::ValuesIn(damages()),
                         [](const auto& row) { return std::string(row.param.name); });

// No prefix of a good file is taken for the whole.
TEST(Safetensors, EveryTruncationIsRefused) {
  const TemporaryFile file("whole.safetensors");
  write_safetensors(file.path(), example());
  std::ifstream in(file.path(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  ASSERT_EQ(error_of_file(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(error_of_file(whole.substr(0, size)), "") << size << " bytes";
}

// Nothing but an Error comes out, and nothing crashes.
TEST(Safetensors, EveryFlippedHeaderByteIsAnErrorOrHarmless) {
  const TemporaryFile file("flipped.safetensors");
  write_safetensors(file.path(), {{{"k", "v"}}, {{"w", {2, 1}, {1, 2}}, {"x", {1}, {3}}}});
  std::ifstream in(file.path(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int bit : {0, 3, 5, 7}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ (1U << bit));
      EXPECT_EQ(error_of_file(damaged).find('\n'), std::string::npos);
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Reads the whole table in a process that may grow by 64 MiB only.
[[noreturn]] void read_damages_in_little_memory() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto limit = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + (std::int64_t{64} << 20));
  const rlimit bounds{limit, limit};
  if (::setrlimit(RLIMIT_AS, &bounds) != 0) std::_Exit(3);
  try {
    static_cast<void>(std::vector<char>(std::size_t{256} << 20));
    std::_Exit(4);  // the limit does not bite
  } catch (const std::bad_alloc&) {
  }
  for (const Damage& damage : damages())
    if (error_of_file(damage.content).empty()) std::_Exit(5);
  std::_Exit(0);
}

// What a file of a few bytes claims is never allocated.
TEST(Safetensors, DamagedFilesAllocateNothingLarge) {
  EXPECT_EXIT(read_damages_in_little_memory(), testing::ExitedWithCode(0), "");
}
#endif

TEST(Safetensors, RefuseToWriteWhatCannotBeReadAgain) {
  const TemporaryFile file("unwritable.safetensors");
  const auto error_with = [&](const SafeTensors& content) -> std::string {
    try {
      write_safetensors(file.path(), content);
    } catch (const Error& error) {
      EXPECT_FALSE(std::filesystem::exists(file.path()));
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_with({{}, {{"w", {3}, {1, 2}}}}).find("another shape"), std::string::npos);
  EXPECT_NE(error_with({{}, {{"w", {1}, {1}}, {"w", {1}, {2}}}}).find("twice"), std::string::npos);
  EXPECT_NE(error_with({{}, {{"__metadata__", {1}, {1}}}}).find("twice"), std::string::npos);
  EXPECT_NE(error_with({{}, {{"\xff", {1}, {1}}}}).find("UTF-8"), std::string::npos);
}

TEST(Safetensors, NamesThePlaceThatCannotBeUsed) {
  const std::filesystem::path nowhere = std::filesystem::path(testing::TempDir()) / "no such folder" / "x.safetensors";
  EXPECT_THROW(write_safetensors(nowhere, example()), Error);
  EXPECT_THROW(static_cast<void>(read_safetensors(nowhere)), Error);
  EXPECT_THROW(static_cast<void>(read_safetensors(testing::TempDir())), Error);
  EXPECT_THROW(static_cast<void>(read_safetensors("/dev/zero")), Error);
}

// The old file stays whole when the new one cannot be written.
TEST(Safetensors, AFailedWriteLeavesTheOldFile) {
  const TemporaryFile file("kept.safetensors");
  write_safetensors(file.path(), example());
  const std::filesystem::path part = file.path().string() + ".part";
  std::filesystem::create_directory(part);  // in the way of the temporary file
  EXPECT_THROW(write_safetensors(file.path(), {}), Error);
  std::filesystem::remove(part);
  EXPECT_TRUE(same(read_safetensors(file.path()), example()));
}

}  // namespace
}  // namespace tide
