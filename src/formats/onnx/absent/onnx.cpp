#include "formats/onnx/onnx.h"

#include "base/error.h"

namespace tide {
namespace {

[[noreturn]] void refuse(const std::string& file) {
  throw Error(
      "{}: this build reads and writes no ONNX files; install libprotobuf-dev and protobuf-compiler and configure with "
      "-DTIDE_ONNX=ON",
      file);
}

}  // namespace

bool has_onnx() { return false; }
bool looks_like_onnx(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte{8} && bytes[1] > std::byte{0} && bytes[1] < std::byte{128};
}
ForeignGraph read_onnx(const std::filesystem::path& path) { refuse(path.string()); }
ForeignGraph parse_onnx(std::span<const std::byte> /*bytes*/, const std::string& source,
                        const std::filesystem::path& /*folder*/) {
  refuse(source);
}
void write_onnx(const ForeignGraph& /*graph*/, const std::filesystem::path& path) { refuse(path.string()); }

}  // namespace tide
