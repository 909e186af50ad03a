// Device memory of another rank on this machine: in the same process by its address, in another by CUDA's handles.
#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace tide::cuda {

// What others open it by. REQUIRES: the beginning of what cudaMalloc() returned.
[[nodiscard]] std::string export_device_memory(const std::byte* memory);

// Of one thread at a time.
class OpenedMemory {
 public:
  // Throws an Error where the device cannot reach it.
  [[nodiscard]] std::byte* open(const std::string& text);
  void close(std::byte* memory) noexcept;

 private:
  std::set<std::byte*> opened_;  // of other processes
};

}  // namespace tide::cuda
