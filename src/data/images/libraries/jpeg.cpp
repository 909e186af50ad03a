// Through libjpeg-turbo: only the rows and columns that are needed, at a half, a quarter or an eighth where that is
// enough.
#include <csetjmp>
#include <cstdio>
// libjpeg's header wants stdio's before it.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>

#include "base/error.h"
#include "data/images/codecs.h"

namespace tide {
namespace {

// libjpeg reports errors by calling a function that must not return: it jumps back to where the reader was entered,
// over C functions only. Warnings pass, but for a file that ends too early.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void jump_back(j_common_ptr info) {
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->text);
  std::longjmp(errors->back, 1);
}

void hear(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) jump_back(info);
}

// Where the result goes; it outlives the jumps.
struct JpegJob {
  std::span<const std::byte> bytes;
  PixelBox box;
  DecodeOptions options;
  const std::string* source;
  ImageExtents extents;
  DecodedPart part;
  std::vector<std::uint8_t> row;  // of four channels, where the file has them
};

class JpegReader {
 public:
  explicit JpegReader(JpegJob& job) : job_(job) {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = jump_back;
    errors_.manager.emit_message = hear;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  void read(bool header_alone) {
    // Nothing in this function has a destructor that a jump would leave out.
    if (setjmp(errors_.back) != 0) throw Error("{}: is damaged: {}", *job_.source, errors_.text);
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(job_.bytes.data()), job_.bytes.size());
    jpeg_read_header(&info_, TRUE);
    job_.extents = {static_cast<std::int64_t>(info_.image_height), static_cast<std::int64_t>(info_.image_width)};
    if (!header_alone) decode();
  }

 private:
  // The largest of 1, 2, 4 and 8 that leaves enough.
  [[nodiscard]] std::int64_t shrunk() const {
    const DecodeOptions& options = job_.options;
    std::int64_t by = 1;
    while (by < 8 && options.least_height > 0 && options.least_width > 0 &&
           job_.box.height / (2 * by) >= options.least_height && job_.box.width / (2 * by) >= options.least_width)
      by *= 2;
    return by;
  }

  void decode() {
    // 64 pixels take three bits or more.
    check_extents(job_.extents, job_.bytes.size(), 256, *job_.source);
    const std::int64_t by = shrunk();
    const bool four = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(by);
    info_.out_color_space = four ? JCS_CMYK : job_.options.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info_.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&info_);
    const auto height = static_cast<std::int64_t>(info_.output_height),
               width = static_cast<std::int64_t>(info_.output_width);
    const PixelBox& box = job_.box;
    const std::int64_t top = std::clamp<std::int64_t>(box.top / by, 0, height - 1);
    const std::int64_t bottom = std::clamp<std::int64_t>((box.top + box.height + by - 1) / by, top + 1, height);
    const std::int64_t left = std::clamp<std::int64_t>(box.left / by, 0, width - 1);
    const std::int64_t right = std::clamp<std::int64_t>((box.left + box.width + by - 1) / by, left + 1, width);
    // Columns are cut at blocks. Beside a cut libjpeg smooths colours differently, so a block more is taken.
    constexpr std::int64_t kBeside = 16;
    const std::int64_t wanted_left = std::max<std::int64_t>(0, left - kBeside);
    JDIMENSION x = static_cast<JDIMENSION>(wanted_left);
    JDIMENSION columns = static_cast<JDIMENSION>(std::min(width, right + kBeside) - wanted_left);
    if (static_cast<std::int64_t>(columns) < width) jpeg_crop_scanline(&info_, &x, &columns);
    if (top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(top));

    const std::int64_t channels = job_.options.channels;
    DecodedPart& part = job_.part;
    part = {.image = {bottom - top, static_cast<std::int64_t>(columns), channels, {}},
            .top = top,
            .left = static_cast<std::int64_t>(x),
            .shrunk = by};
    const auto row_bytes = static_cast<std::size_t>(part.image.width * channels);
    part.image.pixels.resize(static_cast<std::size_t>(part.image.height) * row_bytes);
    if (four) job_.row.resize(static_cast<std::size_t>(info_.output_width) * 4);
    for (std::int64_t y = 0; y < part.image.height; ++y) {
      std::uint8_t* const to = part.image.pixels.data() + static_cast<std::size_t>(y) * row_bytes;
      JSAMPROW row = four ? job_.row.data() : to;
      jpeg_read_scanlines(&info_, &row, 1);
      if (four) from_ink(job_.row.data(), to, part.image.width, channels);
    }
    jpeg_abort_decompress(&info_);
  }

  // Adobe's files have the paper's share of cyan, magenta, yellow and black.
  void from_ink(const std::uint8_t* from, std::uint8_t* to, std::int64_t columns, std::int64_t channels) const {
    const bool inverted = info_.saw_Adobe_marker != 0;
    for (std::int64_t i = 0; i < columns; ++i, from += 4, to += channels) {
      int colour[3];
      const int black = inverted ? from[3] : 255 - from[3];
      for (int c = 0; c < 3; ++c) colour[c] = (inverted ? from[c] : 255 - from[c]) * black / 255;
      if (channels == 1)
        to[0] = static_cast<std::uint8_t>((299 * colour[0] + 587 * colour[1] + 114 * colour[2]) / 1000);
      else
        for (int c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(colour[c]);
    }
  }

  JpegJob& job_;
  jpeg_decompress_struct info_{};
  JpegErrors errors_{};
};

}  // namespace

ImageExtents jpeg_extents(std::span<const std::byte> bytes, const std::string& source) {
  JpegJob job{bytes, {}, {}, &source, {}, {}, {}};
  JpegReader(job).read(true);
  check_extents(job.extents, bytes.size(), 256, source);
  return job.extents;
}

DecodedPart decode_jpeg(std::span<const std::byte> bytes, const std::string& source, const PixelBox& box,
                        const DecodeOptions& options) {
  JpegJob job{bytes, box, options, &source, {}, {}, {}};
  JpegReader(job).read(false);
  return std::move(job.part);
}

}  // namespace tide
