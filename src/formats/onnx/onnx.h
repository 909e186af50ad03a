// ONNX files, by protobuf from a schema of the fields that are needed (onnx.proto beside this file).
#pragma once

#include <filesystem>

#include "foreign/graph.h"

namespace tide {

// Reads a file and the data that it keeps outside of itself, which must lie in its folder. Throws an Error that names
// the file. Nothing is allocated beyond a small multiple of what the files have.
[[nodiscard]] ForeignGraph read_onnx(const std::filesystem::path& path);
// The same of bytes; `folder` holds the outside data.
[[nodiscard]] ForeignGraph parse_onnx(std::span<const std::byte> bytes, const std::string& source,
                                      const std::filesystem::path& folder);
void write_onnx(const ForeignGraph& graph, const std::filesystem::path& path);

}  // namespace tide
