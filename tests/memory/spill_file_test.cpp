// The spill file on the real file system, by either way of reading and writing.
#include "memory/spill_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "support/error_of.h"

namespace tide {
namespace {

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::byte>((i * 7 + i / 509 + seed) & 0xFFU);
  return values;
}

void expect_round_trips(SpillFile& file) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, std::size_t{9} << 20}) {
    const std::vector<std::byte> written = pattern(bytes, static_cast<unsigned>(bytes));
    std::vector<std::byte> read(bytes);
    file.write(Bytes(768), written.data(), Bytes(static_cast<std::int64_t>(bytes)));
    file.read(Bytes(768), read.data(), Bytes(static_cast<std::int64_t>(bytes)));
    EXPECT_EQ(read, written);
  }
}

TEST(SpillFile, KeepsWhatIsWritten) {
  SpillFile plain({}, Bytes(10 << 20), make_plain_io());
  expect_round_trips(plain);
  std::unique_ptr<FileIo> uring = make_uring_io();
  if (!uring) GTEST_SKIP() << "this kernel has no io_uring";
  SpillFile file({}, Bytes(10 << 20), std::move(uring));
  expect_round_trips(file);
}

TEST(SpillFile, ReadsWhileItWrites) {
  constexpr std::int64_t kPart = 3 << 20;
  SpillFile file({}, Bytes(2 * kPart));
  const std::vector<std::byte> first = pattern(kPart, 1), second = pattern(kPart, 2);
  file.write(Bytes(), first.data(), Bytes(kPart));
  std::thread writer([&] {
    for (int i = 0; i < 10; ++i) file.write(Bytes(kPart), second.data(), Bytes(kPart));
  });
  std::vector<std::byte> read(kPart);
  for (int i = 0; i < 10; ++i) {
    file.read(Bytes(), read.data(), Bytes(kPart));
    EXPECT_EQ(read, first);
  }
  writer.join();
  file.read(Bytes(kPart), read.data(), Bytes(kPart));
  EXPECT_EQ(read, second);
}

TEST(SpillFile, LeavesNothingBehind) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("tide_spill_{}", ::getpid());
  std::filesystem::create_directory(folder);
  {
    SpillFile file(folder, Bytes(4096));
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}

std::string error_of(const std::filesystem::path& folder, Bytes size) {
  return test::error_of([&] { SpillFile file(folder, size); });
}

TEST(SpillFile, SaysWhyItCannotBeMade) {
  EXPECT_EQ(
      error_of("/nowhere/at/all", Bytes(1)),
      "no spill file can be made in /nowhere/at/all: No such file or directory; choose another folder with --spill");
  // More than any disk has.
  const std::string error = error_of({}, Bytes(std::int64_t{1} << 61));
  EXPECT_NE(error.find("has no room for a spill file of"), std::string::npos) << error;
  EXPECT_NE(error.find("--spill"), std::string::npos) << error;
}

// The end of the file is an error, not an endless loop.
TEST(SpillFile, AnEndOfTheFileIsAnError) {
  for (const bool plain : {true, false}) {
    SpillFile file({}, Bytes(4096), plain ? make_plain_io() : make_file_io());
    std::vector<std::byte> memory(8192);
    try {
      file.read(Bytes(), memory.data(), Bytes(8192));
      FAIL() << "8192 bytes were read of a file of 4096";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("nothing was moved"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tide
