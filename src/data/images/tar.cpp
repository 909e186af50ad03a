// tar files (ustar, with GNU's and POSIX's long names), of which nothing is unpacked.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "data/images/source.h"
#include "data/printable.h"

namespace tide {
namespace {

constexpr std::size_t kBlock = 512;

struct TarMember {
  std::string name;
  std::span<const std::byte> bytes;
};

class TarReader {
 public:
  TarReader(std::span<const std::byte> bytes, std::string source) : bytes_(bytes), source_(std::move(source)) {}

  // The next file; nothing at the end.
  std::optional<TarMember> next() {
    std::string long_name;
    while (place_ < bytes_.size()) {
      if (bytes_.size() - place_ < kBlock) fail("it ends within a header");
      const std::span<const std::byte> header = bytes_.subspan(place_, kBlock);
      if (std::all_of(header.begin(), header.end(), [](std::byte b) { return b == std::byte{0}; })) return std::nullopt;
      check_sum(header);
      const std::uint64_t size = number(header.subspan(124, 12));
      place_ += kBlock;
      if (size > bytes_.size() - place_) fail("a member is longer than the file");
      const std::span<const std::byte> content = bytes_.subspan(place_, static_cast<std::size_t>(size));
      place_ += std::min(bytes_.size() - place_, (content.size() + kBlock - 1) / kBlock * kBlock);
      const char type = std::to_integer<char>(header[156]);
      if (type == 'L') {
        long_name = text(content);
      } else if (type == 'x') {
        if (const std::string name = path_of(content); !name.empty()) long_name = name;
      } else if (type == '0' || type == '\0') {
        std::string name = long_name.empty() ? name_of(header) : long_name;
        return TarMember{std::move(name), content};
      } else {
        long_name.clear();
      }
    }
    return std::nullopt;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error("{}: is not a whole tar file: {} (at byte {})", source_, what, place_);
  }

  static std::string text(std::span<const std::byte> field) {
    const auto end = std::find(field.begin(), field.end(), std::byte{0});
    return {reinterpret_cast<const char*>(field.data()), static_cast<std::size_t>(end - field.begin())};
  }

  static std::string name_of(std::span<const std::byte> header) {
    const std::string name = text(header.subspan(0, 100)), prefix = text(header.subspan(345, 155));
    const bool has_prefix = text(header.subspan(257, 6)).starts_with("ustar") && !prefix.empty();
    return has_prefix && std::to_integer<char>(header[262]) == '\0' ? prefix + "/" + name : name;
  }

  // "17 path=some/name\n" among others.
  static std::string path_of(std::span<const std::byte> content) {
    const std::string_view records(reinterpret_cast<const char*>(content.data()), content.size());
    const std::size_t at = records.find(" path=");
    if (at == std::string_view::npos) return {};
    const std::string_view rest = records.substr(at + 6);
    return std::string(rest.substr(0, rest.find('\n')));
  }

  [[nodiscard]] std::uint64_t number(std::span<const std::byte> field) const {
    std::uint64_t value = 0;
    if ((field[0] & std::byte{0x80}) != std::byte{0}) {  // GNU's way to write large ones
      for (std::size_t i = 4; i < field.size(); ++i) value = value << 8 | std::to_integer<std::uint64_t>(field[i]);
      return value;
    }
    for (const std::byte b : field) {
      const char digit = std::to_integer<char>(b);
      if (digit == ' ' || digit == '\0') continue;
      if (digit < '0' || digit > '7') fail("a size is not a number");
      value = value * 8 + static_cast<std::uint64_t>(digit - '0');
    }
    return value;
  }

  // The sum of the header's bytes, its own field taken as blanks.
  void check_sum(std::span<const std::byte> header) const {
    std::uint64_t sum = 8 * ' ';
    for (std::size_t i = 0; i < kBlock; ++i)
      if (i < 148 || i >= 156) sum += std::to_integer<std::uint64_t>(header[i]);
    if (sum != number(header.subspan(148, 8))) fail("a header's sum is wrong");
  }

  std::span<const std::byte> bytes_;
  std::string source_;
  std::size_t place_ = 0;
};

class TarFiles final : public ImageSource {
 public:
  explicit TarFiles(const std::vector<std::filesystem::path>& paths) {
    std::int32_t classes = 0;
    for (const std::filesystem::path& path : paths) {
      files_.push_back(std::make_unique<MappedFile>(path));
      add(*files_.back(), path.string(), classes);
    }
    name_ = paths.size() == 1 ? paths[0].string() : fmt::format("{} and {} more", paths[0].string(), paths.size() - 1);
    if (images_.empty()) throw Error("{}: has no pair of NAME.jpg and NAME.cls", name_);
    classes_ = classes;
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(images_.size()); }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  [[nodiscard]] std::vector<std::string> class_names() const override { return numbered_names(classes_); }
  [[nodiscard]] std::int32_t label(std::int64_t index) const override { return at(index).label; }
  [[nodiscard]] StoredImage image(std::int64_t index) const override {
    return {.name = at(index).name, .bytes = at(index).bytes, .owned = {}};
  }

 private:
  struct Entry {
    std::string name;
    std::span<const std::byte> bytes;
    std::int32_t label = 0;
  };
  // What belongs together has one name up to the first dot behind the last slash.
  struct Parts {
    std::optional<TarMember> image, label;
  };

  void add(const MappedFile& file, const std::string& path, std::int32_t& classes) {
    if (file.bytes().size() >= 2 && file.bytes()[0] == std::byte{0x1F} && file.bytes()[1] == std::byte{0x8B})
      throw Error("{}: is compressed; unpack it with gunzip first", path);
    TarReader reader(file.bytes(), path);
    std::map<std::string, Parts> samples;
    std::vector<std::string> order;
    while (std::optional<TarMember> member = reader.next()) {
      const std::size_t slash = member->name.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
      const std::size_t dot = member->name.find('.', begin);
      if (dot == std::string::npos) continue;
      const std::string key = member->name.substr(0, dot), ending = member->name.substr(dot);
      const bool image = ending == ".jpg" || ending == ".jpeg" || ending == ".png";
      if (!image && ending != ".cls") continue;
      if (!samples.contains(key)) order.push_back(key);
      (image ? samples[key].image : samples[key].label) = std::move(member);
    }
    for (const std::string& key : order) {
      const Parts& parts = samples.at(key);
      if (!parts.image || !parts.label)
        throw Error("{}: '{}' has no {}", path, printable(key), parts.image ? "class (.cls)" : "image (.jpg or .png)");
      const std::int32_t label = label_of(*parts.label, path);
      classes = std::max(classes, label + 1);
      images_.push_back({path + ":" + printable(parts.image->name), parts.image->bytes, label});
    }
  }

  static std::int32_t label_of(const TarMember& member, const std::string& path) {
    constexpr std::int32_t kMostClasses = 1 << 24;
    const char* begin = reinterpret_cast<const char*>(member.bytes.data());
    const char* const end = begin + member.bytes.size();
    while (begin < end && (*begin == ' ' || *begin == '\n')) ++begin;
    std::int32_t label = -1;
    const auto [stop, error] = std::from_chars(begin, end, label);
    const bool blank_behind = std::all_of(stop, end, [](char c) { return c == ' ' || c == '\n' || c == '\r'; });
    if (error != std::errc() || !blank_behind || label < 0 || label >= kMostClasses)
      throw Error("{}: '{}' is not the number of a class", path, printable(member.name));
    return label;
  }

  [[nodiscard]] const Entry& at(std::int64_t index) const { return images_[static_cast<std::size_t>(index)]; }

  std::string name_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::int64_t classes_ = 0;
  std::vector<Entry> images_;
};

}  // namespace

ImageSourcePtr tar_files(const std::vector<std::filesystem::path>& paths) { return std::make_shared<TarFiles>(paths); }

}  // namespace tide
