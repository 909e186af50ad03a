// CIFAR-10's and MNIST's files, and arrays: images of one size behind each other.
#include "base/checked.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "data/images/source.h"

namespace tide {
namespace {

using FilePtr = std::unique_ptr<MappedFile>;

class CifarFiles final : public ImageSource {
 public:
  explicit CifarFiles(const std::vector<std::filesystem::path>& paths) : name_(paths.at(0).parent_path().string()) {
    for (const std::filesystem::path& path : paths) {
      files_.push_back(std::make_unique<MappedFile>(path));
      const std::span<const std::byte> bytes = files_.back()->bytes();
      if (bytes.empty() || bytes.size() % kRecord != 0)
        throw Error("{}: has {} bytes, which is no multiple of the {} of a CIFAR-10 image", path.string(), bytes.size(),
                    kRecord);
      for (std::size_t at = 0; at < bytes.size(); at += kRecord) {
        const int label = std::to_integer<int>(bytes[at]);
        if (label >= kClasses)
          throw Error("{}: image {} has the class {}; CIFAR-10 has 0 to 9", path.string(), at / kRecord, label);
        records_.push_back(bytes.subspan(at, kRecord));
      }
    }
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(records_.size()); }
  [[nodiscard]] std::vector<std::string> class_names() const override { return classes_; }
  [[nodiscard]] std::int32_t label(std::int64_t index) const override {
    return std::to_integer<std::int32_t>(records_[static_cast<std::size_t>(index)][0]);
  }
  [[nodiscard]] StoredImage image(std::int64_t index) const override {
    return {.name = fmt::format("{}, image {}", name_, index),
            .bytes = records_[static_cast<std::size_t>(index)].subspan(1),
            .owned = {},
            .raw = true,
            .interleaved = false,
            .height = 32,
            .width = 32,
            .channels = 3};
  }

 private:
  static constexpr std::size_t kRecord = 1 + 3 * 32 * 32;
  static constexpr int kClasses = 10;
  std::string name_;
  std::vector<FilePtr> files_;
  std::vector<std::string> classes_{"airplane", "automobile", "bird",  "cat",  "deer",
                                    "dog",      "frog",       "horse", "ship", "truck"};
  std::vector<std::span<const std::byte>> records_;
};

class IdxFiles final : public ImageSource {
 public:
  IdxFiles(const std::filesystem::path& images, const std::filesystem::path& labels)
      : name_(images.string()), images_(images), labels_(labels) {
    const Header header = header_of(images_.bytes(), 3, images.string());
    const Header of_labels = header_of(labels_.bytes(), 1, labels.string());
    if (header.extents[0] != of_labels.extents[0])
      throw Error("{} has {} images, but {} has {} labels; name two files that belong together", images.string(),
                  header.extents[0], labels.string(), of_labels.extents[0]);
    height_ = header.extents[1], width_ = header.extents[2];
    if (height_ < 1 || width_ < 1 || header.extents[0] < 1) throw Error("{}: has no pixels", name_);
    pixels_ = header.content, numbers_ = of_labels.content;
    std::int32_t classes = 0;
    for (const std::byte b : numbers_) classes = std::max(classes, std::to_integer<std::int32_t>(b) + 1);
    classes_ = classes;
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(numbers_.size()); }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  [[nodiscard]] std::vector<std::string> class_names() const override { return numbered_names(classes_); }
  [[nodiscard]] std::int32_t label(std::int64_t index) const override {
    return std::to_integer<std::int32_t>(numbers_[static_cast<std::size_t>(index)]);
  }
  [[nodiscard]] StoredImage image(std::int64_t index) const override {
    const auto pixels = static_cast<std::size_t>(height_ * width_);
    return {.name = fmt::format("{}, image {}", name_, index),
            .bytes = pixels_.subspan(static_cast<std::size_t>(index) * pixels, pixels),
            .owned = {},
            .raw = true,
            .interleaved = false,
            .height = height_,
            .width = width_,
            .channels = 1};
  }

 private:
  struct Header {
    std::vector<std::int64_t> extents;
    std::span<const std::byte> content;
  };

  // Two zeros, 8 for bytes, the number of extents; then these, four bytes each, the highest first.
  static Header header_of(std::span<const std::byte> bytes, std::size_t rank, const std::string& source) {
    if (bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B})
      throw Error("{}: is compressed; unpack it with gunzip first", source);
    const std::size_t length = 4 + 4 * rank;
    if (bytes.size() < length || bytes[0] != std::byte{0} || bytes[1] != std::byte{0} || bytes[2] != std::byte{8} ||
        std::to_integer<std::size_t>(bytes[3]) != rank)
      throw Error("{}: is not an idx file of bytes with {} extents", source, rank);
    Header header;
    std::int64_t elements = 1;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      std::int64_t extent = 0;
      for (std::size_t i = 0; i < 4; ++i) extent = extent << 8 | std::to_integer<std::int64_t>(bytes[4 + 4 * axis + i]);
      header.extents.push_back(extent);
      if (__builtin_mul_overflow(elements, extent, &elements))
        throw Error("{}: its header speaks of more bytes than there can be", source);
    }
    header.content = bytes.subspan(length);
    if (static_cast<std::int64_t>(header.content.size()) != elements)
      throw Error("{}: has {} bytes behind its header, which speaks of {}", source, header.content.size(), elements);
    return header;
  }

  std::string name_;
  MappedFile images_, labels_;
  std::int64_t height_ = 0, width_ = 0;
  std::span<const std::byte> pixels_, numbers_;
  std::int64_t classes_ = 0;
};

class NpyImages final : public ImageSource {
 public:
  NpyImages(NumberArray images, NumberArray labels) : images_(std::move(images)), labels_(std::move(labels)) {
    if (images_.type != NumberType::u8 || images_.shape.size() != 4)
      throw Error("{}: is no array of bytes with four extents", images_.name);
    if (images_.shape[0] < 1 || labels_.elements() != images_.shape[0])
      throw Error("{} has {} images, but {} has {} labels; name two arrays that belong together", images_.name,
                  images_.shape[0], labels_.name, labels_.elements());
    const auto is_count = [](std::int64_t channels) { return channels == 1 || channels == 3; };
    interleaved_ = is_count(images_.shape[3]) && !is_count(images_.shape[1]);
    channels_ = images_.shape[interleaved_ ? 3 : 1];
    height_ = images_.shape[interleaved_ ? 1 : 2], width_ = images_.shape[interleaved_ ? 2 : 3];
    if (!is_count(channels_) || height_ < 1 || width_ < 1)
      throw Error("{}: is {}; images have 1 or 3 channels", images_.name, fmt::join(images_.shape, "x"));
    constexpr double kMostClasses = 1 << 24;
    double classes = 0;
    for (std::int64_t i = 0; i < images_.shape[0]; ++i) {
      const double label = labels_.at(i);
      if (!(label >= 0 && label < kMostClasses) || label != static_cast<double>(static_cast<std::int32_t>(label)))
        throw Error("{}: {} is not the number of a class", labels_.name, label);
      classes = std::max(classes, label + 1);
    }
    classes_ = static_cast<std::int64_t>(classes);
  }
  [[nodiscard]] std::string name() const override { return images_.name; }
  [[nodiscard]] std::int64_t size() const override { return images_.shape[0]; }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  [[nodiscard]] std::vector<std::string> class_names() const override { return numbered_names(classes_); }
  [[nodiscard]] std::int32_t label(std::int64_t index) const override {
    return static_cast<std::int32_t>(labels_.at(index));
  }
  [[nodiscard]] StoredImage image(std::int64_t index) const override {
    const auto bytes = static_cast<std::size_t>(channels_ * height_ * width_);
    return {.name = fmt::format("{}, image {}", images_.name, index),
            .bytes = images_.bytes.subspan(static_cast<std::size_t>(index) * bytes, bytes),
            .owned = {},
            .raw = true,
            .interleaved = interleaved_,
            .height = height_,
            .width = width_,
            .channels = channels_};
  }

 private:
  NumberArray images_, labels_;
  bool interleaved_ = false;
  std::int64_t channels_ = 0, height_ = 0, width_ = 0;
  std::int64_t classes_ = 0;
};

}  // namespace

ImageSourcePtr cifar_files(const std::vector<std::filesystem::path>& paths) {
  return std::make_shared<CifarFiles>(paths);
}

ImageSourcePtr idx_files(const std::filesystem::path& images, const std::filesystem::path& labels) {
  return std::make_shared<IdxFiles>(images, labels);
}

ImageSourcePtr npy_images(NumberArray images, NumberArray labels) {
  return std::make_shared<NpyImages>(std::move(images), std::move(labels));
}

}  // namespace tide
