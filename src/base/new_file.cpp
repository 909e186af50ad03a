#include "base/new_file.h"

#include <unistd.h>

#include "base/error.h"

namespace tide {
namespace {

constexpr int kMostLinks = 40;  // one behind the other, as the system has it

std::filesystem::path follow_links(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(path, error); ++links) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  if (std::filesystem::is_symlink(path, error))
    throw Error("{} cannot be written: it is a link that leads nowhere", path.string());
  return path;
}

}  // namespace

std::filesystem::path place_of_new_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  const std::filesystem::path place = follow_links(path);
  const std::filesystem::path folder = place.has_parent_path() ? place.parent_path() : ".";
  std::error_code error;
  const std::filesystem::file_status found = std::filesystem::status(place, error);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found))
    throw Error("{} is no file and cannot be replaced by one; give another name", name);
  if (!std::filesystem::is_directory(folder, error))
    throw Error("{} cannot be written: there is no folder {}", name, folder.string());
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error("{} cannot be written: folder {} takes no files; check its permissions", name, folder.string());
  return place;
}

NewFile::NewFile(const std::filesystem::path& path) : name_(path), place_(place_of_new_file(path)) {
  temporary_ = place_;
  temporary_ += ".part";
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) temporary_.clear();  // what is there by that name is not this one's
}

NewFile::~NewFile() {
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove(temporary_, ignored);
}

void NewFile::finish() {
  stream_.close();
  std::error_code error;
  if (stream_) std::filesystem::rename(temporary_, place_, error);
  if (!stream_ || error) throw Error("{} could not be written; check the folder and the free space", name_.string());
  temporary_.clear();
}

}  // namespace tide
