#include "backend/cuda/context.h"

#include <array>
#include <cstring>

#include "backend/cuda/elementwise.h"

namespace tide::cuda {
namespace {

std::string version_text(int version, int major_unit, int minor_unit) {
  return fmt::format("{}.{}", version / major_unit, version % major_unit / minor_unit);
}

void require_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return;
  static_cast<void>(cudaGetLastError());
  throw Error(
      "there is no CUDA device here (CUDA says \"{}\"); use --backend cpu, or a machine with an NVIDIA GPU and its "
      "driver",
      status == cudaSuccess ? "no device" : cudaGetErrorString(status));
}

}  // namespace

Context::Context(Precision precision, bool deterministic) : precision_(precision), deterministic_(deterministic) {
  require_device();
  for (Stream& stream : streams_) stream = make_stream();
  for (Event& event : ready_) event = make_event();
  cudnnHandle_t cudnn = nullptr;
  check(cudnnCreate(&cudnn), "starting cuDNN");
  cudnn_.reset(cudnn);
  check(cudnnSetStream(cudnn, stream()), "giving cuDNN a stream");
  cublasLtHandle_t cublas = nullptr;
  check(cublasLtCreate(&cublas), "starting cuBLASLt");
  cublas_.reset(cublas);
  void* memory = nullptr;
  check(cudaMalloc(&memory, sizeof(DeviceState)), "allocating the state of a step");
  state_.reset(memory);
}

std::string Context::description() const {
  cudaDeviceProp properties{};
  int device = 0, driver = 0, runtime = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaGetDeviceProperties(&properties, device), "asking for the device's properties");
  check(cudaDriverGetVersion(&driver), "asking for the driver's version");
  check(cudaRuntimeGetVersion(&runtime), "asking for CUDA's version");
  return fmt::format("cuda {} driver={} runtime={} cuDNN {}.{}.{} cuBLASLt {} {}{}", properties.name,
                     version_text(driver, 1000, 10), version_text(runtime, 1000, 10), cudnnGetVersion() / 10000,
                     cudnnGetVersion() / 100 % 100, cudnnGetVersion() % 100, cublasLtGetVersion(),
                     precision_name(precision_), deterministic_ ? "" : " nondeterministic");
}

std::string Context::pci_bus_id() const {
  int device = 0;
  std::array<char, 32> text{};
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device), "asking for the device's bus id");
  std::string bus_id = text.data();
  for (char& letter : bus_id)  // others write these numbers in small letters
    if (letter >= 'A' && letter <= 'F') letter = static_cast<char>(letter - 'A' + 'a');
  return bus_id;
}

void Context::set_state(const StepState& state) {
  if (recording_) return;
  const DeviceState value{state.seed,         state.step,         state.first_sample,
                          state.global_batch, state.update_count, state.learning_rate};
  // Where only padding differs it is stored once more. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
  if (last_state_ && std::memcmp(&*last_state_, &value, sizeof value) == 0) return;
  check(launch_store_state(stream(), static_cast<DeviceState*>(state_.get()), value), "setting the state of a step");
  last_state_ = value;
}

void Context::copy(Lane lane, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(copying_[lane]);  // copies of the lane, and what ranks do together
  const cudaStream_t target = stream(lane);
  if (lane != Lane::compute) {
    const cudaEvent_t ready = ready_[lane].get();
    check(cudaEventRecord(ready, stream()), "ordering a copy");
    check(cudaStreamWaitEvent(target, ready, 0), "ordering a copy");
  }
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, target), "a copy");
  check(cudaStreamSynchronize(target), "a copy, or a kernel before it,");
}

}  // namespace tide::cuda
