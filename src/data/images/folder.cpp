// Images as files in folders.
#include <algorithm>
#include <cctype>
#include <map>

#include "base/checked.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "data/images/source.h"

namespace tide {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

StoredImage read_image(const fs::path& path) {
  const MappedFile file(path);
  StoredImage image{.name = path.string(), .bytes = {}, .owned = {file.bytes().begin(), file.bytes().end()}};
  image.bytes = image.owned;
  return image;
}

// Sorted, so that their order is the same everywhere.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) throw Error("{}: cannot be read: {}", folder.string(), error.message());
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : entries) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

void add_images(const fs::path& folder, int depth, std::vector<fs::path>& found) {
  constexpr int kDeepest = 16;  // links may go in circles
  for (const fs::path& path : entries_of(folder)) {
    if (fs::is_directory(path)) {
      if (depth < kDeepest) add_images(path, depth + 1, found);
    } else if (is_image(path)) {
      found.push_back(path);
    }
  }
}

class ImageFolder final : public ImageSource {
 public:
  ImageFolder(const fs::path& path, const std::vector<std::string>& classes) : name_(path.string()), classes_(classes) {
    for (const fs::path& folder : entries_of(path)) {
      if (!fs::is_directory(folder)) continue;
      const std::string name = folder.filename().string();
      auto place = std::find(classes_.begin(), classes_.end(), name);
      if (place == classes_.end() && !classes.empty())
        throw Error("{}: there is no class '{}' in the training part; name its folders alike", name_, name);
      if (place == classes_.end()) place = classes_.insert(classes_.end(), name);
      std::vector<fs::path> found;
      add_images(folder, 0, found);
      const auto label = static_cast<std::int32_t>(place - classes_.begin());
      for (fs::path& image : found) images_.emplace_back(std::move(image), label);
    }
    if (images_.empty())
      throw Error("{}: there are no JPEG or PNG files in folders of it; make a folder for each class", name_);
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(images_.size()); }
  [[nodiscard]] std::vector<std::string> class_names() const override { return classes_; }
  [[nodiscard]] std::int32_t label(std::int64_t index) const override { return at(index).second; }
  [[nodiscard]] StoredImage image(std::int64_t index) const override { return read_image(at(index).first); }

 private:
  [[nodiscard]] const std::pair<fs::path, std::int32_t>& at(std::int64_t index) const {
    return images_[static_cast<std::size_t>(index)];
  }
  std::string name_;
  std::vector<std::string> classes_;
  std::vector<std::pair<fs::path, std::int32_t>> images_;
};

class MaskedFolder final : public ImageSource {
 public:
  explicit MaskedFolder(const fs::path& path) : name_(path.string()) {
    std::map<std::string, fs::path> masks;
    for (const fs::path& mask : entries_of(path / "masks"))
      if (is_image(mask)) masks[mask.stem().string()] = mask;
    for (const fs::path& image : entries_of(path / "images")) {
      if (!is_image(image)) continue;
      const auto mask = masks.find(image.stem().string());
      if (mask == masks.end())
        throw Error("{}: has no mask; {} must have a PNG of the same name", image.string(), (path / "masks").string());
      pairs_.emplace_back(image, mask->second);
    }
    if (pairs_.empty()) throw Error("{}: there are no JPEG or PNG files in its folder images", name_);
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(pairs_.size()); }
  [[nodiscard]] std::vector<std::string> class_names() const override { return classes_; }
  [[nodiscard]] std::int32_t label(std::int64_t /*index*/) const override { return 0; }
  [[nodiscard]] StoredImage image(std::int64_t index) const override { return read_image(at(index).first); }
  [[nodiscard]] bool has_masks() const override { return true; }
  [[nodiscard]] StoredImage mask(std::int64_t index) const override { return read_image(at(index).second); }

 private:
  [[nodiscard]] const std::pair<fs::path, fs::path>& at(std::int64_t index) const {
    return pairs_[static_cast<std::size_t>(index)];
  }
  std::string name_;
  std::vector<std::string> classes_;  // none: the network says how many there are
  std::vector<std::pair<fs::path, fs::path>> pairs_;
};

}  // namespace

ImageSourcePtr image_folder(const fs::path& path, const std::vector<std::string>& classes) {
  return std::make_shared<ImageFolder>(path, classes);
}

ImageSourcePtr masked_folder(const fs::path& path) { return std::make_shared<MaskedFolder>(path); }

}  // namespace tide
