// Through libpng.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "base/error.h"
#include "data/images/codecs.h"

namespace tide {
namespace {

struct PngJob {
  std::span<const std::byte> bytes;
  std::int64_t channels;
  bool raw;
  const std::string* source;
  std::size_t place = 0;
  ImageExtents extents = {};
  Image image = {};
  std::vector<std::uint8_t*> rows = {};
  std::string text = {};
};

void read_bytes(png_structp png, png_bytep to, png_size_t count) {
  auto* const job = static_cast<PngJob*>(png_get_io_ptr(png));
  if (count > job->bytes.size() - job->place) png_error(png, "it ends too early");
  std::memcpy(to, job->bytes.data() + job->place, count);
  job->place += count;
}

[[noreturn]] void jump_back(png_structp png, png_const_charp text) {
  static_cast<PngJob*>(png_get_error_ptr(png))->text = text;
  png_longjmp(png, 1);
}

void ignore(png_structp /*png*/, png_const_charp /*text*/) {}

// libpng's two structures.
struct PngReader {
  explicit PngReader(PngJob& job) : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, jump_back, ignore)) {
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_read_struct(&png, &info, nullptr);
      throw Error("{}: there is no memory to read it", *job.source);
    }
    // A deflated byte can be a thousand.
    png_set_chunk_malloc_max(png, 8 << 20);
    png_set_read_fn(png, &job, read_bytes);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  png_structp png = nullptr;
  png_infop info = nullptr;
};

void convert(png_structp png, png_infop info, const PngJob& job) {
  const int type = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
  if (job.raw) {
    if (type != PNG_COLOR_TYPE_PALETTE && type != PNG_COLOR_TYPE_GRAY)
      png_error(png, "its pixels are colours, not numbers of classes");
    if (depth == 16) png_error(png, "its pixels have 16 bits; write numbers of classes as 8 bits");
    png_set_packing(png);
    return;
  }
  if (depth == 16) png_set_strip_16(png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (type == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
  png_set_strip_alpha(png);
  const bool grey = type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA;
  if (grey && job.channels == 3) png_set_gray_to_rgb(png);
  if (!grey && job.channels == 1)
    png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);  // as JPEG files have it
}

void read_png(PngJob& job, bool header_alone) {
  PngReader reader(job);
  // From here on nothing has a destructor that a jump would leave out: all that grows is the job's.
  if (setjmp(png_jmpbuf(reader.png)) != 0) throw Error("{}: is damaged: {}", *job.source, job.text);
  png_read_info(reader.png, reader.info);
  job.extents = {static_cast<std::int64_t>(png_get_image_height(reader.png, reader.info)),
                 static_cast<std::int64_t>(png_get_image_width(reader.png, reader.info))};
  check_extents(job.extents, job.bytes.size(), 8 * 1032, *job.source);
  if (header_alone) return;
  convert(reader.png, reader.info, job);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  if (png_get_rowbytes(reader.png, reader.info) != static_cast<std::size_t>(job.extents.width * job.channels))
    png_error(reader.png, "its pixels are of a kind that is not read");
  job.image = {job.extents.height, job.extents.width, job.channels, {}};
  const auto row_bytes = static_cast<std::size_t>(job.extents.width * job.channels);
  if (png_get_interlace_type(reader.png, reader.info) == PNG_INTERLACE_NONE) {
    // Grows with what is there, whatever the header claims.
    for (std::int64_t y = 0; y < job.extents.height; ++y) {
      job.image.pixels.resize(job.image.pixels.size() + row_bytes);
      png_read_row(reader.png, job.image.pixels.data() + job.image.pixels.size() - row_bytes, nullptr);
    }
  } else {
    check_extents(job.extents, job.bytes.size(), 256, *job.source);
    job.image.pixels.resize(static_cast<std::size_t>(job.extents.height) * row_bytes);
    for (std::int64_t y = 0; y < job.extents.height; ++y)
      job.rows.push_back(job.image.pixels.data() + static_cast<std::size_t>(y) * row_bytes);
    png_read_image(reader.png, job.rows.data());
  }
  png_read_end(reader.png, nullptr);
}

}  // namespace

ImageExtents png_extents(std::span<const std::byte> bytes, const std::string& source) {
  PngJob job{.bytes = bytes, .channels = 1, .raw = false, .source = &source};
  read_png(job, true);
  return job.extents;
}

Image decode_png(std::span<const std::byte> bytes, const std::string& source, std::int64_t channels, bool raw) {
  PngJob job{.bytes = bytes, .channels = channels, .raw = raw, .source = &source};
  read_png(job, false);
  return std::move(job.image);
}

}  // namespace tide
