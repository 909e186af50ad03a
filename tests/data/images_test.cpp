// Decoding, resampling, and what damage does.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "data/augment.h"
#include "data/image_files.h"
#include "data/images/decode.h"
#include "support/error_of.h"

namespace tide::test {
namespace {

constexpr PixelBox kAll{0, 0, 1 << 20, 1 << 20};

// make_files.py's picture.
int colour_at(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height, std::int64_t channel) {
  if (channel == 0) return static_cast<int>(x * 255 / (width - 1));
  if (channel == 1) return static_cast<int>(y * 255 / (height - 1));
  return static_cast<int>((x + y) * 255 / (width + height - 2));
}

int farthest(const DecodedPart& part, std::int64_t width, std::int64_t height) {
  int most = 0;
  const Image& image = part.image;
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x)
      for (std::int64_t c = 0; c < 3; ++c) {
        const int seen = image.pixels[static_cast<std::size_t>((y * image.width + x) * 3 + c)];
        most = std::max(most, std::abs(seen - colour_at(x + part.left, y + part.top, width, height, c)));
      }
  return most;
}

TEST(Images, PngIsReadExactly) {
  const auto bytes = bytes_of_file(image_file("colours.png"));
  const ImageExtents extents = image_extents(bytes, "colours.png");
  EXPECT_EQ(extents.width, 24);
  EXPECT_EQ(extents.height, 16);
  for (const char* name : {"colours.png", "alpha.png"}) {
    const DecodedPart part = decode_part(bytes_of_file(image_file(name)), name, kAll, {});
    EXPECT_EQ(farthest(part, 24, 16), 0) << name;
  }
}

TEST(Images, GreyAndColoursBecomeEachOther) {
  const DecodedPart colours = decode_part(bytes_of_file(image_file("grey.png")), "grey.png", kAll, {});
  ASSERT_EQ(colours.image.channels, 3);
  for (std::size_t i = 0; i < colours.image.pixels.size(); i += 3)
    EXPECT_EQ(colours.image.pixels[i], colours.image.pixels[i + 2]);
  const DecodedPart grey = decode_part(bytes_of_file(image_file("colours.png")), "colours.png", kAll, {.channels = 1});
  ASSERT_EQ(grey.image.pixels.size(), 24U * 16);
  const DecodedPart stored = decode_part(bytes_of_file(image_file("grey.png")), "grey.png", kAll, {.channels = 1});
  for (std::size_t i = 0; i < grey.image.pixels.size(); ++i)
    EXPECT_NEAR(grey.image.pixels[i], stored.image.pixels[i], 1);
  EXPECT_EQ(decode_part(bytes_of_file(image_file("grey.jpg")), "grey.jpg", kAll, {.channels = 1}).image.channels, 1);
}

TEST(Images, JpegIsReadAsAWholeAndInParts) {
  for (const char* name : {"picture.jpg", "progressive.jpg"}) {
    const auto bytes = bytes_of_file(image_file(name));
    EXPECT_LE(farthest(decode_part(bytes, name, kAll, {}), 200, 120), 6) << name;
    const PixelBox box{40, 70, 50, 60};
    const DecodedPart part = decode_part(bytes, name, box, {});
    EXPECT_LE(part.top, box.top);
    EXPECT_LE(part.left, box.left);
    EXPECT_GE(part.top + part.image.height, box.top + box.height);
    EXPECT_GE(part.left + part.image.width, box.left + box.width);
    EXPECT_LE(part.image.width, box.width + 64);
    EXPECT_LE(farthest(part, 200, 120), 6) << name;
  }
}

TEST(Images, AJpegThatIsLargeEnoughIsShrunkWhileItIsRead) {
  const auto bytes = bytes_of_file(image_file("picture.jpg"));
  const DecodedPart part = decode_part(bytes, "picture.jpg", {0, 0, 120, 200}, {.least_height = 30, .least_width = 50});
  EXPECT_EQ(part.shrunk, 4);
  EXPECT_EQ(part.image.height, 30);
  EXPECT_EQ(part.image.width, 50);
  const DecodedPart whole =
      decode_part(bytes, "picture.jpg", {0, 0, 120, 200}, {.least_height = 61, .least_width = 50});
  EXPECT_EQ(whole.shrunk, 1);
}

TEST(Images, InkBecomesLight) {
  const DecodedPart part = decode_part(bytes_of_file(image_file("ink.jpg")), "ink.jpg", kAll, {});
  EXPECT_LE(farthest(part, 64, 48), 12);
}

TEST(Images, MasksAreNumbers) {
  const Image mask = decode_mask(bytes_of_file(image_file("mask.png")), "mask.png");
  for (std::int64_t y = 0; y < 16; ++y)
    for (std::int64_t x = 0; x < 24; ++x)
      EXPECT_EQ(mask.pixels[static_cast<std::size_t>(y * 24 + x)], y == 15 ? 255 : x >= 12 ? 1 : 0);
  EXPECT_NE(error_of([] {
              static_cast<void>(decode_mask(bytes_of_file(image_file("colours.png")), "c.png"));
            }).find("colours, not numbers"),
            std::string::npos);
}

TEST(Images, ResamplingKeepsWhatItNeedNotChange) {
  const DecodedPart part = decode_part(bytes_of_file(image_file("colours.png")), "colours.png", kAll, {});
  EXPECT_EQ(resample(part.image, {0, 0, 16, 24}, 16, 24).pixels, part.image.pixels);
  const Image inner = resample(part.image, {4, 6, 8, 12}, 8, 12);
  for (std::int64_t y = 0; y < 8; ++y)
    for (std::int64_t x = 0; x < 12; ++x)
      EXPECT_EQ(inner.pixels[static_cast<std::size_t>((y * 12 + x) * 3)], colour_at(x + 6, y + 4, 24, 16, 0));
  // A constant stays one at any size.
  const Image grey{7, 5, 1, std::vector<std::uint8_t>(35, 100)};
  for (const std::uint8_t value : resample(grey, {0.3, 0.2, 6.1, 4.5}, 11, 3).pixels) EXPECT_EQ(value, 100);
  // What is outside is black.
  const Image moved = resample(grey, {-7, 0, 7, 5}, 7, 5);
  EXPECT_EQ(moved.pixels[0], 0);
}

TEST(Images, AlterationsAreOfTheSeedTheSampleAndThePass) {
  const Augmentation augmentation{.crop = Crop::resized, .flip = true, .jitter = 0.4, .seed = 5};
  const auto drawn = [&](std::uint64_t sample, std::uint64_t pass) {
    return draw(augmentation, sample, pass, 300, 400, 224, 224);
  };
  EXPECT_EQ(drawn(3, 1).box.top, drawn(3, 1).box.top);
  EXPECT_NE(drawn(3, 1).brightness, drawn(3, 2).brightness);
  EXPECT_NE(drawn(3, 1).brightness, drawn(4, 1).brightness);
  double area = 0;
  int flipped = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Alteration one = drawn(i, 0);
    EXPECT_GE(one.box.top, 0);
    EXPECT_GE(one.box.left, 0);
    EXPECT_LE(one.box.top + one.box.height, 300);
    EXPECT_LE(one.box.left + one.box.width, 400);
    EXPECT_GE(one.box.height * one.box.width, 0.079 * 300 * 400);
    area += one.box.height * one.box.width / (300 * 400) / 2000;
    flipped += one.flipped ? 1 : 0;
  }
  EXPECT_NEAR(area, 0.433, 0.03);  // over many draws of boxes that fit
  EXPECT_NEAR(flipped, 1000, 100);
}

TEST(Images, ThreeHundredMutationsOfEachAreReadOrRefusedInOneLine) {
  std::mt19937 random(7);
  int refused = 0;
  for (const char* name : {"picture.jpg", "progressive.jpg", "colours.png", "palette.png", "mask.png"}) {
    const std::vector<std::byte> whole = bytes_of_file(image_file(name));
    for (int i = 0; i < 300; ++i) {
      std::vector<std::byte> bytes = whole;
      for (unsigned changes = 1 + random() % 4; changes > 0; --changes)
        bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 256);
      if (i % 3 == 0) bytes.resize(random() % bytes.size());
      const std::string error = error_of([&] {
        static_cast<void>(image_extents(bytes, "file"));
        const DecodedPart part = decode_part(bytes, "file", kAll, {});
        EXPECT_LE(part.image.pixels.size(), 3 * 1100 * 8 * bytes.size());
      });
      EXPECT_EQ(error.find('\n'), std::string::npos);
      refused += error.empty() ? 0 : 1;
      EXPECT_TRUE(error.empty() || error.starts_with("file: ")) << error;
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(Images, ClaimsThatCannotBeTrueAreRefusedBeforeMemoryIsTaken) {
  // A PNG header of 60000 x 60000 pixels in a file of 100 bytes.
  std::string png("\x89PNG\r\n\x1A\n", 8);
  png += big_endian(13) + "IHDR" + big_endian(60000) + big_endian(60000) + std::string("\x08\x02\0\0\0", 5);
  png += big_endian(0x12345678) + std::string(60, '\0');
  std::vector<std::byte> bytes(png.size());
  std::memcpy(bytes.data(), png.data(), png.size());
  EXPECT_NE(error_of([&] { static_cast<void>(image_extents(bytes, "file")); }), "");
}

}  // namespace
}  // namespace tide::test
