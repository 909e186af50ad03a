#include "base/new_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/error_of.h"
#include "support/temporary_file.h"

namespace tide {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  NewFile file(path);
  file.stream() << text;
  file.finish();
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(NewFile, ReplacesWhatWasThereInTheEnd) {
  const test::TemporaryFile file("new_file");
  write(file.path(), "old");
  {
    NewFile given_up(file.path());
    given_up.stream() << "half" << std::flush;
  }
  EXPECT_EQ(text_of(file.path()), "old");
  EXPECT_FALSE(std::filesystem::exists(file.path().string() + ".part"));
  write(file.path(), "new");
  EXPECT_EQ(text_of(file.path()), "new");
}

TEST(NewFile, FollowsLinks) {
  const test::TemporaryFile file("target"), link("link"), second("second_link"), loop("loop");
  std::filesystem::create_symlink(file.path().filename(), link.path());
  std::filesystem::create_symlink(link.path(), second.path());
  for (const char* const text : {"not there yet", "there"}) {
    write(second.path(), text);
    EXPECT_TRUE(std::filesystem::is_symlink(link.path()) && std::filesystem::is_symlink(second.path()));
    EXPECT_EQ(text_of(file.path()), text);
  }
  std::filesystem::create_symlink(loop.path(), loop.path());
  EXPECT_EQ(test::error_of([&] { write(loop.path(), "text"); }),
            loop.path().string() + " cannot be written: it is a link that leads nowhere");
}

TEST(NewFile, LeavesAloneWhatIsNoFile) {
  const test::TemporaryFile pipe("pipe");
  ASSERT_EQ(mkfifo(pipe.path().c_str(), 0600), 0);
  for (const std::filesystem::path& path : {pipe.path(), std::filesystem::path(testing::TempDir())}) {
    EXPECT_EQ(test::error_of([&] { (void)place_of_new_file(path); }),
              path.string() + " is no file and cannot be replaced by one; give another name");
    EXPECT_NE(test::error_of([&] { write(path, "text"); }), "");
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe.path()));
}

TEST(NewFile, NamesTheFolderThatIsNotThere) {
  EXPECT_EQ(test::error_of([] { (void)place_of_new_file("/nowhere/at all/x"); }),
            "/nowhere/at all/x cannot be written: there is no folder /nowhere/at all");
  EXPECT_EQ(place_of_new_file("x"), "x");
}

}  // namespace
}  // namespace tide
