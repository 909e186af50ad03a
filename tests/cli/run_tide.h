// Runs the program and keeps what it printed.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tide::test {

struct ProgramRun {
  int code = -1;
  std::string out, err;
};

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder that is gone when the test is.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tide_test_XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline ProgramRun run_tide(const std::string& arguments) {
  const TemporaryFolder folder;
  const std::filesystem::path out = folder.path() / "out", err = folder.path() / "err";
  const int status =
      std::system((std::string(TIDE_BINARY) + " " + arguments + " > " + out.string() + " 2> " + err.string()).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), file_text(out), file_text(err)};
}

// One line on stderr that mentions `words`.
inline void expect_refusal(const std::string& arguments, int code, const std::vector<std::string>& words) {
  SCOPED_TRACE(arguments);
  const ProgramRun run = run_tide(arguments);
  EXPECT_EQ(run.code, code) << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_EQ(run.out, "");
  for (const std::string& word : words)
    EXPECT_NE(run.err.find(word), std::string::npos) << word << " not in: " << run.err;
}

// The longest line, in characters.
inline std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0, start = 0;
  for (std::size_t end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    widest = std::max(widest, end - start);
  return widest;
}

}  // namespace tide::test
