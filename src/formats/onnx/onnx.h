// ONNX files, by protobuf from a schema of the fields that are needed (onnx.proto beside this file).
#pragma once

#include <filesystem>

#include "foreign/graph.h"

namespace tide {

// Operator sets that are read; larger files cannot be, since protobuf counts in 31 bits.
inline constexpr std::int64_t kOldestOnnxOperators = 11, kNewestOnnxOperators = 24;

// Whether this build can.
[[nodiscard]] bool has_onnx();
// Whether bytes may be an ONNX file, by how they begin.
[[nodiscard]] bool looks_like_onnx(std::span<const std::byte> bytes);

// Reads a file and the data that it keeps outside of itself, which must lie in its folder. Throws an Error that names
// the file. Nothing is allocated beyond a small multiple of what the files have. A graph that is called what exporters
// call all of them has the file's name.
[[nodiscard]] ForeignGraph read_onnx(const std::filesystem::path& path);
// The same of bytes; `folder` holds the outside data.
[[nodiscard]] ForeignGraph parse_onnx(std::span<const std::byte> bytes, const std::string& source,
                                      const std::filesystem::path& folder);
// What graph.h lists in the domain "tidepool" is written as it stands, which other programs do not know.
void write_onnx(const ForeignGraph& graph, const std::filesystem::path& path);

}  // namespace tide
