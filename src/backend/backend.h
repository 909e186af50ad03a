// The contract between the executor and a device. A backend describes (which algorithms a
// task has and the workspace of each, how it lays out parameters), prepares (once per
// task), and runs (many times, without allocating). It decides nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/lane.h"
#include "step/step.h"

namespace tide {

// What changes from one training step to the next.
struct StepState {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  // counts from 0; keys the dropout masks
  double learning_rate = 0;
  std::int64_t update_count = 1;  // counts from 1, for the bias correction of Adam
  std::int64_t first_sample = 0;  // global index of the batch's first sample
  std::int64_t global_batch = 1;  // the loss gradient is divided by this; 0: it is zero, the samples do not count
};
// What the gradient of a loss of this weight is multiplied by.
[[nodiscard]] inline double gradient_scale(const StepState& state, double weight, std::int64_t positions) {
  return state.global_batch > 0 ? weight / static_cast<double>(state.global_batch * positions) : 0;
}

// One run of a prepared task.
struct Launch {
  std::byte* const* operands = nullptr;  // an address per operand of the task, in order
  std::byte* workspace = nullptr;        // of the algorithm's size, 256-byte aligned
  const StepState* state = nullptr;
};

// A prepared task. Calling it must not allocate. In-place pairs that the task allows may
// come with equal addresses.
using Kernel = std::function<void(const Launch&)>;

// A whole step recorded once and launched many times, on devices that run by themselves.
// Record the ops in the plan's order, then finish(); a step is begin_step(), launch(),
// synchronize(). Nothing
// else may be done with the backend between making a queue and finish().
class StepQueue {
 public:
  virtual ~StepQueue() = default;

  // The next op of `lane`, and all behind it, come after `op`, which was recorded on another lane.
  virtual void wait(Lane lane, std::size_t op) = 0;
  // The kernel is called now; addresses must stay what they are, the state is that of begin_step().
  virtual void run(Lane lane, std::size_t op, const Kernel& kernel, const Launch& launch) = 0;
  // Between device memory and memory of allocate_host(), either way.
  virtual void copy(Lane lane, std::size_t op, std::byte* to, const std::byte* from, Bytes bytes) = 0;
  // Something that the host does in its turn. What it throws, synchronize() throws. An op may be several of these and
  // of copies, on one lane.
  virtual void call(Lane lane, std::size_t op, std::function<void()> work) = 0;
  virtual void finish() = 0;

  virtual void launch() = 0;  // returns at once
  virtual void synchronize() = 0;

  // Of the last launch, once it is over, in seconds from its start. REQUIRES: times are recorded.
  struct Span {
    double begin = 0, end = 0;
  };
  [[nodiscard]] virtual Span span(std::size_t op) const = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  // Name, library versions, instruction set, threads: whatever may change sizes or bits.
  [[nodiscard]] virtual std::string description() const = 0;
  // Where the device is on PCIe, "0000:3b:00.0"; nothing where its memory is the host's.
  [[nodiscard]] virtual std::optional<std::string> pci_bus_id() const { return std::nullopt; }

  // Fills in the algorithms of every task and the bytes of parameter-like storages
  // (parameters, gradients, optimizer state) where this backend's layout differs.
  virtual void annotate(Step& step) const = 0;

  // REQUIRES: `step` was annotated by this backend, has its network, and outlives the kernel.
  [[nodiscard]] virtual Kernel prepare(const Step& step, TaskId task, std::size_t algorithm) = 0;

  // Copies a tensor between its logical order (row major: NCHW, OIHW) and this backend's layout in
  // device memory. Not for the hot path.
  virtual void write_tensor(const Step& step, TensorId tensor, std::span<const float> logical, std::byte* address) = 0;
  virtual void read_tensor(const Step& step, TensorId tensor, const std::byte* address, std::span<float> logical) = 0;

  // The same in host memory for what belongs to a parameter (its values, a gradient, a moment): from logical order, and
  // back. REQUIRES: memory is as large as the parameter's view in a bucket says.
  virtual void pack(const Step& step, ParameterId parameter, std::span<const float> logical, std::byte* memory) const;
  virtual void unpack(const Step& step, ParameterId parameter, const std::byte* memory, std::span<float> logical) const;

  // Device memory, 256-byte aligned. Throws an Error that states the size.
  [[nodiscard]] virtual std::byte* allocate(Bytes bytes) = 0;
  virtual void release(std::byte* memory, Bytes bytes) noexcept = 0;

  // Device memory of this backend that others on this machine can use: the text by which they open it, in this process
  // or another. The default is for devices whose memory cannot be had so, and throws an Error.
  [[nodiscard]] virtual std::string export_memory(std::byte* memory);
  // What another has exported; closed before it is released there. REQUIRES: the same kind of backend.
  [[nodiscard]] virtual std::byte* open_memory(const std::string& text);
  virtual void close_memory(std::byte* /*memory*/) noexcept {}

  // What allocate() could have now; nothing where the device's memory is the host's.
  [[nodiscard]] virtual std::optional<Bytes> free_memory() const { return std::nullopt; }
  // What is taken of it by anyone, the device's context and libraries included; likewise.
  [[nodiscard]] virtual std::optional<Bytes> used_memory() const { return std::nullopt; }

  // Host memory for what leaves the device, 256-byte aligned. A device that copies by itself
  // wants it pinned.
  [[nodiscard]] virtual std::byte* allocate_host(Bytes bytes);
  virtual void release_host(std::byte* memory, Bytes bytes) noexcept;

  // Copies between device and host memory; over when it returns. Called while kernels run, and
  // for each direction from a thread of its own.
  virtual void copy(std::byte* to, const std::byte* from, Bytes bytes);

  // The same beside kernels that are on their way already, in memory that they do not use.
  virtual void copy_beside(std::byte* to, const std::byte* from, Bytes bytes) { copy(to, from, bytes); }

  // Whether the host can read and write what allocate() returns. Otherwise only copy() can.
  [[nodiscard]] virtual bool host_addressable() const { return true; }

  // Before the first kernel of a step. Kernels may look at Launch::state instead, but not in a
  // recorded step.
  virtual void begin_step(const StepState& /*state*/) {}
  // Kernels may return before their work is done; this waits for all of it.
  virtual void synchronize() {}

  // What a recorded step takes of the device for each op, besides what allocate() returned.
  [[nodiscard]] virtual Bytes recorded_bytes_per_op() const { return {}; }
  // Starts to record a step; null where steps cannot be recorded.
  [[nodiscard]] virtual std::unique_ptr<StepQueue> make_queue(bool record_times);
};

// How products of floats are computed where there is a choice: sums are fp32, and so is storage
// but for the layer outputs of a step in bf16 (StepOptions::activations).
enum class Precision : std::uint8_t { fp32, tf32, bf16 };
[[nodiscard]] std::string_view precision_name(Precision precision);
// Throws an Error that lists them where it is none of them.
[[nodiscard]] Precision precision_from_name(std::string_view name);
// How layer outputs and their gradients are stored.
[[nodiscard]] inline DataType activations_of(Precision precision) {
  return precision == Precision::bf16 ? DataType::bf16 : DataType::f32;
}

struct BackendOptions {
  int threads = 0;                        // cpu: 0 means all cores
  Precision precision = Precision::tf32;  // cuda
  bool deterministic = true;              // cuda: no algorithm whose bits differ from run to run
  bool one_algorithm = false;             // cuda: one per task, so that all plans give the same bits
};

// "cpu", "cuda", "reference" or "null". Always links: for a backend that this build leaves out,
// the Error says how to get it.
[[nodiscard]] std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options);
// `threads` 0 means all cores.
[[nodiscard]] std::unique_ptr<Backend> make_backend(std::string_view name, int threads = 0);

}  // namespace tide
