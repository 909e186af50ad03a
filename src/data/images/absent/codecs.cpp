// A build without libjpeg-turbo and libpng.
#include "data/images/codecs.h"

#include "base/error.h"

namespace tide {
namespace {

[[noreturn]] void throw_absent(const std::string& source) {
  throw Error("{}: this build reads no images; install libjpeg-dev and libpng-dev and build again", source);
}

}  // namespace

ImageExtents jpeg_extents(std::span<const std::byte> /*bytes*/, const std::string& source) { throw_absent(source); }
DecodedPart decode_jpeg(std::span<const std::byte> /*bytes*/, const std::string& source, const PixelBox& /*box*/,
                        const DecodeOptions& /*options*/) {
  throw_absent(source);
}
ImageExtents png_extents(std::span<const std::byte> /*bytes*/, const std::string& source) { throw_absent(source); }
Image decode_png(std::span<const std::byte> /*bytes*/, const std::string& source, std::int64_t /*channels*/,
                 bool /*raw*/) {
  throw_absent(source);
}

}  // namespace tide
