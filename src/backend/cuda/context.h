// What all kernels of one CudaBackend share: the device, its streams, the libraries' handles,
// the state of the current step in device memory, and the algorithms found so far.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/device_state.h"
#include "backend/cuda/handles.h"

namespace tide::cuda {

class ConvolutionPlan;
class MatrixPlan;
// What two tasks must have in common to share their algorithms, as numbers.
using Signature = std::vector<std::int64_t>;

class Context {
 public:
  // Throws an Error where there is no device.
  Context(Precision precision, bool deterministic);

  [[nodiscard]] Precision precision() const { return precision_; }
  [[nodiscard]] bool deterministic() const { return deterministic_; }
  [[nodiscard]] std::string description() const;
  [[nodiscard]] std::string pci_bus_id() const;

  // Each lane has one. Kernels run on that of the compute lane.
  [[nodiscard]] cudaStream_t stream(Lane lane = Lane::compute) const { return streams_[lane].get(); }
  [[nodiscard]] cudnnHandle_t cudnn() const { return cudnn_.get(); }
  [[nodiscard]] cublasLtHandle_t cublas() const { return cublas_.get(); }

  // Where kernels read what changes from step to step.
  [[nodiscard]] const DeviceState* state() const { return static_cast<const DeviceState*>(state_.get()); }
  // Enqueues the change, if it is one. While a step is recorded the state is left alone: it
  // will be set before each launch.
  void set_state(const StepState& state);
  void set_recording(bool recording) { recording_ = recording; }

  // Copies on the stream of `lane`, behind everything that was enqueued on the compute lane so
  // far; over when it returns.
  void copy(Lane lane, void* to, const void* from, std::size_t bytes);

  // Found once per signature: a deep network has few.
  std::map<Signature, std::vector<std::shared_ptr<const ConvolutionPlan>>> convolutions;
  std::map<Signature, std::vector<std::shared_ptr<const MatrixPlan>>> products;

 private:
  Precision precision_;
  bool deterministic_;
  bool recording_ = false;
  PerLane<Stream> streams_;
  PerLane<Event> ready_;
  PerLane<std::mutex> copying_;
  CudnnHandle cudnn_;
  CublasHandle cublas_;
  DeviceMemory state_;
  std::optional<DeviceState> last_state_;
};
using ContextPtr = std::shared_ptr<Context>;

}  // namespace tide::cuda
