// The cuda backend: cuDNN for convolutions, cuBLASLt for matrix products, kernels of our own
// for everything else. Activations are NHWC, weights output channels x height x width x input
// channels; storage is fp32, or bf16 for layer outputs and their gradients.
#include <nvtx3/nvToolsExt.h>

#include <array>
#include <map>

#include "backend/cuda/opened_memory.h"
#include "backend/cuda/recipe.h"
#include "backend/cuda/step_queue.h"
#include "backend/cuda/streams.h"
#include "backend/cuda/task_room.h"
#include "backend/logical_order.h"
#include "backend/make.h"
#include "base/size_text.h"

namespace tide {
namespace {

using namespace cuda;

[[noreturn]] void nothing_to_run(const TaskView& view) {
  throw Error("task '{}' has nothing to run", task_name(view.step(), view.id()));
}

Recipe recipe_of_layer(const TaskView& view, const ContextPtr& context) {
  using Function = Recipe (*)(const TaskView&, const ContextPtr&);
  static constexpr std::array<Function, kLayerKinds> kFunctions{
#define TIDE_FUNCTION(kind) kind##_recipe,
      TIDE_LAYER_KINDS(TIDE_FUNCTION)
#undef TIDE_FUNCTION
  };
  return kFunctions[static_cast<std::size_t>(view.layer_kind())](view, context);
}

Recipe recipe_of(const TaskView& view, const ContextPtr& context) {
  switch (view.kind()) {
    case TaskKind::sum_gradients: return sum_recipe(view, context, Role::x, Role::y);
    case TaskKind::norm: return norm_recipe(view, context);
    case TaskKind::update: return update_recipe(view, context);
    case TaskKind::forward:
    case TaskKind::replay:
    case TaskKind::backward:
    case TaskKind::backward_data:
    case TaskKind::backward_weights: return recipe_of_layer(view, context);
    case TaskKind::reduce:
    case TaskKind::scatter:
    case TaskKind::gather: break;  // several ranks' together
  }
  nothing_to_run(view);
}

// Shows the task's name around its launches in a profiler (NVTX): those of steps that run op by
// op, and of the recording of the others.
Kernel named(std::string name, Kernel kernel) {
  return [name = std::move(name), kernel = std::move(kernel)](const Launch& launch) {
    const struct Range {
      explicit Range(const std::string& text) { nvtxRangePushA(text.c_str()); }
      Range(const Range&) = delete;
      Range& operator=(const Range&) = delete;
      ~Range() { nvtxRangePop(); }
    } range(name);
    kernel(launch);
  };
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const BackendOptions& options)
      : context_(std::make_shared<Context>(options.precision, options.deterministic)),
        one_algorithm_(options.one_algorithm) {}

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] std::string description() const override { return context_->description(); }
  [[nodiscard]] std::optional<std::string> pci_bus_id() const override { return context_->pci_bus_id(); }
  [[nodiscard]] bool host_addressable() const override { return false; }

  void annotate(Step& step) const override {
    step.backend = description();
    step.algorithm_sets.resize(1);
    std::map<std::vector<std::pair<std::string, Bytes>>, std::uint32_t> sets{{{{"default", Bytes{}}}, 0}};
    const Bytes room = largest_task(step);
    for (std::size_t t = 0; t < step.tasks.size(); ++t) {
      if (is_collective(step.tasks[t].kind)) continue;
      std::vector<Algorithm> algorithms;
      std::vector<std::pair<std::string, Bytes>> key;
      Recipe recipe = recipe_of(TaskView(step, TaskId(t)), context_);
      if (one_algorithm_) recipe = {fixed_choice(recipe, operand_bytes(step, TaskId(t)), room)};
      for (const Variant& variant : recipe) {
        algorithms.push_back({variant.name, variant.workspace});
        key.emplace_back(variant.name, variant.workspace);
      }
      const auto [set, is_new] = sets.emplace(std::move(key), step.algorithm_sets.size());
      if (is_new) step.algorithm_sets.push_back(std::move(algorithms));
      step.tasks[t].algorithms = set->second;
    }
  }

  [[nodiscard]] Kernel prepare(const Step& step, TaskId task, std::size_t algorithm) override {
    const std::string& name = step.algorithms_of(task).at(algorithm).name;
    for (const Variant& variant : recipe_of(TaskView(step, task), context_))
      if (variant.name == name) return named(task_name(step, task), variant.make());
    throw Error("{} has no algorithm '{}' here", task_name(step, task), name);
  }

  void begin_step(const StepState& state) override { context_->set_state(state); }
  void synchronize() override { check(cudaStreamSynchronize(context_->stream()), "a kernel"); }

  // Weights are output x height x width x input channels: channels last, as cuDNN wants them.
  static MemoryOrder order_of(const Tensor& tensor) {
    return tensor.parameter.valid() ? MemoryOrder::channels_last(tensor.shape.rank()) : tensor.order;
  }
  void write_tensor(const Step& step, TensorId id, std::span<const float> logical, std::byte* address) override {
    const Tensor& tensor = step.tensor(id);
    std::vector<std::byte> stored(bytes_of(tensor.shape, tensor.type).size());
    write_logical(tensor.shape, order_of(tensor), tensor.type, logical, stored.data());
    context_->copy(Lane::compute, address, stored.data(), stored.size());
  }
  void read_tensor(const Step& step, TensorId id, const std::byte* address, std::span<float> logical) override {
    const Tensor& tensor = step.tensor(id);
    std::vector<std::byte> stored(bytes_of(tensor.shape, tensor.type).size());
    context_->copy(Lane::compute, stored.data(), address, stored.size());
    read_logical(tensor.shape, order_of(tensor), tensor.type, stored.data(), logical);
  }

  void pack(const Step& step, ParameterId parameter, std::span<const float> logical, std::byte* memory) const override {
    const Shape& shape = step.network->parameters[parameter.index()].shape;
    write_logical(shape, MemoryOrder::channels_last(shape.rank()), DataType::f32, logical, memory);
  }
  void unpack(const Step& step, ParameterId parameter, const std::byte* memory,
              std::span<float> logical) const override {
    const Shape& shape = step.network->parameters[parameter.index()].shape;
    read_logical(shape, MemoryOrder::channels_last(shape.rank()), DataType::f32, memory, logical);
  }

  [[nodiscard]] std::byte* allocate(Bytes bytes) override {
    void* memory = nullptr;
    if (cudaMalloc(&memory, std::max<std::size_t>(bytes.size(), 1)) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      throw Error("cannot allocate {} of device memory: {} are free; use a smaller budget", format_size(bytes),
                  format_size(*free_memory()));
    }
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory, Bytes /*bytes*/) noexcept override { static_cast<void>(cudaFree(memory)); }

  [[nodiscard]] std::string export_memory(std::byte* memory) override { return export_device_memory(memory); }
  [[nodiscard]] std::byte* open_memory(const std::string& text) override { return opened_.open(text); }
  void close_memory(std::byte* memory) noexcept override { opened_.close(memory); }

  [[nodiscard]] std::optional<Bytes> free_memory() const override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for free memory");
    return cuda::bytes(free);
  }

  [[nodiscard]] std::optional<Bytes> used_memory() const override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for free memory");
    return cuda::bytes(total - free);
  }

  [[nodiscard]] std::byte* allocate_host(Bytes bytes) override {
    void* memory = nullptr;
    if (cudaMallocHost(&memory, std::max<std::size_t>(bytes.size(), 1)) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      throw Error("cannot pin {} of host memory; use a smaller host budget", format_size(bytes));
    }
    return static_cast<std::byte*>(memory);
  }
  void release_host(std::byte* memory, Bytes /*bytes*/) noexcept override { static_cast<void>(cudaFreeHost(memory)); }

  void copy(std::byte* to, const std::byte* from, Bytes bytes) override {
    cudaPointerAttributes target{};
    check(cudaPointerGetAttributes(&target, to), "asking where memory is");
    context_->copy(target.type == cudaMemoryTypeDevice ? Lane::in : Lane::out, to, from, bytes.size());
  }

  void copy_beside(std::byte* to, const std::byte* from, Bytes bytes) override {
    if (bytes.is_zero()) return;
    const cudaStream_t stream = context_->stream(Lane::in);
    check(cudaMemcpyAsync(to, from, bytes.size(), cudaMemcpyDefault, stream), "a copy");
    check(cudaStreamSynchronize(stream), "a copy");
  }

  // From what steps of deep networks had in use beyond arena and context, over an estimate of their
  // nodes: about 4 to 6 KiB.
  [[nodiscard]] Bytes recorded_bytes_per_op() const override { return Bytes(6 << 10); }
  [[nodiscard]] std::unique_ptr<StepQueue> make_queue(bool record_times) override {
    return make_step_queue(context_, record_times);
  }

  [[nodiscard]] const Context& context() const { return *context_; }

 private:
  ContextPtr context_;
  OpenedMemory opened_;
  bool one_algorithm_;
};

}  // namespace

// A flattened value is the value itself.
Recipe cuda::flatten_recipe(const TaskView& view, const ContextPtr& /*context*/) { nothing_to_run(view); }

cuda::LaneStream cuda::stream_of(const Backend& backend, Lane lane) {
  const auto* const own = dynamic_cast<const CudaBackend*>(&backend);
  if (own == nullptr) throw Error("the {} backend has no streams", backend.name());
  return {own->context().stream(lane), own->context().stream()};
}

void cuda::follow_compute(const LaneStream& stream) {
  const Event now = make_event();
  check(cudaEventRecord(now.get(), stream.compute()), "ordering what ranks do together");
  check(cudaStreamWaitEvent(stream.get(), now.get(), 0), "ordering what ranks do together");
}

void cuda::synchronize(const LaneStream& stream) {
  check(cudaStreamSynchronize(stream.get()), "what ranks do together");
}

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options) {
  return std::make_unique<CudaBackend>(options);
}

}  // namespace tide
