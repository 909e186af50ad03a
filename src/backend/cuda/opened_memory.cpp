#include "backend/cuda/opened_memory.h"

#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdint>
#include <sstream>

#include "backend/cuda/handles.h"

namespace tide::cuda {
namespace {

// Of another device of this process: copies between two take the direct way where there is one, and go by host memory
// where there is none.
void reach(const std::byte* memory) {
  cudaPointerAttributes where{};
  int own = 0, possible = 0;
  check(cudaPointerGetAttributes(&where, memory), "asking where memory is");
  check(cudaGetDevice(&own), "asking for the device");
  if (where.device == own) return;
  check(cudaDeviceCanAccessPeer(&possible, own, where.device), "asking for another device");
  if (possible == 0) return;
  const cudaError_t result = cudaDeviceEnablePeerAccess(where.device, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled)
    static_cast<void>(cudaGetLastError());
  else
    check(result, "reaching another device");
}

}  // namespace

std::string export_device_memory(const std::byte* memory) {
  cudaIpcMemHandle_t handle{};
  check(cudaIpcGetMemHandle(&handle, const_cast<std::byte*>(memory)), "exporting device memory");
  std::string text = fmt::format("{} {} ", ::getpid(), reinterpret_cast<std::uintptr_t>(memory));
  for (const char byte : handle.reserved) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::byte* OpenedMemory::open(const std::string& text) {
  std::istringstream words(text);
  long process = 0;
  std::uintptr_t address = 0;
  std::string digits;
  cudaIpcMemHandle_t handle{};
  if (!(words >> process >> address >> digits) || digits.size() != 2 * sizeof handle.reserved)
    throw Error("'{}' is no device memory of another rank", text);
  if (process == ::getpid()) {
    auto* const memory = reinterpret_cast<std::byte*>(address);
    reach(memory);
    return memory;
  }
  for (std::size_t i = 0; i < sizeof handle.reserved; ++i)
    handle.reserved[i] = static_cast<char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  void* memory = nullptr;
  check(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess), "opening another rank's memory");
  opened_.insert(static_cast<std::byte*>(memory));
  return static_cast<std::byte*>(memory);
}

void OpenedMemory::close(std::byte* memory) noexcept {
  if (opened_.erase(memory) > 0) static_cast<void>(cudaIpcCloseMemHandle(memory));
}

}  // namespace tide::cuda
