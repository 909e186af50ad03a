// Memory for the backends whose device is the host.
#pragma once

#include "base/bytes.h"

namespace tide {

// 256-byte aligned. Throws an Error that states the size.
[[nodiscard]] std::byte* allocate_host(Bytes bytes);
void release_host(std::byte* memory, Bytes bytes) noexcept;

}  // namespace tide
