// Where images come from: one by one, each with the number of its class or with a mask of such numbers.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/arrays/npy.h"
#include "data/images/decode.h"

namespace tide {

// As it is stored: a JPEG or PNG file, or pixels as such (raw), channel by channel.
struct StoredImage {
  std::string name;                  // for messages
  std::span<const std::byte> bytes;  // of `owned`, or of what outlives this
  std::vector<std::byte> owned;
  bool raw = false;
  bool interleaved = false;                          // raw: pixel by pixel
  std::int64_t height = 0, width = 0, channels = 0;  // raw
};
[[nodiscard]] ImageExtents extents_of(const StoredImage& image);
[[nodiscard]] DecodedPart part_of(const StoredImage& image, const PixelBox& box, const DecodeOptions& options);

class ImageSource {
 public:
  virtual ~ImageSource() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  [[nodiscard]] virtual std::int64_t classes() const { return std::ssize(class_names()); }
  // Numbers where classes have no names. Made when they are asked for: a label of a few bytes can be a large number.
  [[nodiscard]] virtual std::vector<std::string> class_names() const = 0;
  // These may be called from several threads at once.
  [[nodiscard]] virtual std::int32_t label(std::int64_t index) const = 0;
  [[nodiscard]] virtual StoredImage image(std::int64_t index) const = 0;
  // Each pixel's class instead of the label. REQUIRES: has_masks().
  [[nodiscard]] virtual bool has_masks() const { return false; }
  [[nodiscard]] virtual StoredImage mask(std::int64_t index) const;
};
// "0", "1" and so on.
[[nodiscard]] std::vector<std::string> numbered_names(std::int64_t classes);
using ImageSourcePtr = std::shared_ptr<const ImageSource>;

// A folder per class of JPEG and PNG files, which may lie deeper. Classes are in the order of their names, or of
// `classes` where that is given: then others are an Error.
[[nodiscard]] ImageSourcePtr image_folder(const std::filesystem::path& path,
                                          const std::vector<std::string>& classes = {});
// FOLDER/images and FOLDER/masks, whose files have the same names but for their endings. A mask is a PNG whose pixels
// are numbers of classes; 255 is none.
[[nodiscard]] ImageSourcePtr masked_folder(const std::filesystem::path& path);
inline constexpr std::uint8_t kNoClass = 255;
// tar files as WebDataset has them: NAME.jpg (jpeg, png) and NAME.cls, a number.
[[nodiscard]] ImageSourcePtr tar_files(const std::vector<std::filesystem::path>& paths);
// CIFAR-10's binary files: a byte with the class, then 3 x 32 x 32 bytes, for each image.
[[nodiscard]] ImageSourcePtr cifar_files(const std::vector<std::filesystem::path>& paths);
// A file of images and one of labels as MNIST has them.
[[nodiscard]] ImageSourcePtr idx_files(const std::filesystem::path& images, const std::filesystem::path& labels);
// numpy arrays of bytes, images x channels x height x width or images x height x width x channels, and of classes.
[[nodiscard]] ImageSourcePtr npy_images(NumberArray images, NumberArray labels);

}  // namespace tide
