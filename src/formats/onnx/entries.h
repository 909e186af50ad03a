// How many messages an ONNX file has inside, before they are made: an empty one takes two bytes there and a hundred
// here.
#pragma once

#include <cstdint>
#include <span>

namespace tide {

// Of nodes, their attributes, tensors and inputs. Counts what can be read: nothing behind damaged bytes.
[[nodiscard]] std::int64_t count_onnx_entries(std::span<const std::byte> bytes);

}  // namespace tide
