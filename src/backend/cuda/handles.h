// Checks of the libraries' return codes, and owners of their handles; raw ones are made
// nowhere else.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace tide::cuda {

inline void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // so that the next call does not report it again
  throw Error("{} failed: CUDA says \"{}\"", what, cudaGetErrorString(status));
}
inline void check(cudnnStatus_t status, std::string_view what) {
  if (status != CUDNN_STATUS_SUCCESS) throw Error("{} failed: cuDNN says {}", what, cudnnGetErrorString(status));
}
inline void check(cublasStatus_t status, std::string_view what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error("{} failed: cuBLASLt says {}", what, cublasLtGetStatusString(status));
}

// A handle with its destructor.
template <auto destroy>
struct Destroy {
  template <typename Pointer>
  void operator()(Pointer handle) const noexcept {
    static_cast<void>(destroy(handle));
  }
};
template <typename Handle, auto destroy>
using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<destroy>>;

using Stream = Owner<cudaStream_t, cudaStreamDestroy>;
using Event = Owner<cudaEvent_t, cudaEventDestroy>;
using Graph = Owner<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owner<cudaGraphExec_t, cudaGraphExecDestroy>;
using CudnnHandle = Owner<cudnnHandle_t, cudnnDestroy>;
using CublasHandle = Owner<cublasLtHandle_t, cublasLtDestroy>;
using MatmulDescription = Owner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = Owner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using MatmulPreference = Owner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;
using DeviceMemory = Owner<void*, cudaFree>;

// Streams wait for nothing that they are not told to wait for.
inline Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return Stream(stream);
}
inline Event make_event(bool timed = false) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming), "making an event");
  return Event(event);
}

}  // namespace tide::cuda
