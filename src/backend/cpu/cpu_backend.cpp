// The cpu backend: oneDNN for convolutions and matrix products, kernels of our own for
// everything else.
#include <omp.h>

#include <array>
#include <map>

#include "backend/cpu/context.h"
#include "backend/cpu/recipe.h"
#include "backend/host_memory.h"
#include "backend/logical_order.h"
#include "backend/make.h"
#include "step/buckets.h"

namespace tide {
namespace {

using namespace cpu;

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

std::string_view instruction_set() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core_amx: return "avx512_core_amx";
    case dnnl::cpu_isa::avx512_core_bf16: return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_vnni: return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core: return "avx512_core";
    case dnnl::cpu_isa::avx2_vnni: return "avx2_vnni";
    case dnnl::cpu_isa::avx2: return "avx2";
    case dnnl::cpu_isa::avx: return "avx";
    case dnnl::cpu_isa::sse41: return "sse41";
    default: return "generic";
  }
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads) : context_(std::make_shared<Context>(threads)) {}

  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] std::string description() const override {
    const dnnl_version_t* version = dnnl_version();
    return fmt::format("cpu oneDNN {}.{}.{} {} threads={}", version->major, version->minor, version->patch,
                       instruction_set(), context_->threads());
  }

  void annotate(Step& step) const override {
    if (step.options.activations != DataType::f32)
      throw Error("the cpu backend computes in fp32 only; use --precision fp32, or --backend cuda");
    context_->use_threads();
    step.backend = description();
    for (const Tensor& tensor : step.tensors)
      if (const WeightLayout* layout = layout_of(step, tensor))
        step.storages[tensor.storage.index()].bytes = Bytes(static_cast<std::int64_t>(layout->stored.get_size()));
    lay_out_buckets(step, [&](ParameterId parameter) {
      const WeightLayout* const layout = context_->weight_layout(step.network, parameter);
      return layout != nullptr ? Bytes(static_cast<std::int64_t>(layout->stored.get_size()))
                               : bytes_of(step.network->parameters[parameter.index()].shape, DataType::f32);
    });
    step.algorithm_sets.resize(1);
    std::map<Bytes, std::uint32_t> sets{{Bytes{}, 0}};
    for (std::size_t t = 0; t < step.tasks.size(); ++t) {
      if (is_collective(step.tasks[t].kind)) continue;
      const Bytes workspace = recipe_of(TaskView(step, TaskId(t)), context_).workspace;
      const auto [set, is_new] = sets.emplace(workspace, step.algorithm_sets.size());
      if (is_new) step.algorithm_sets.push_back({Algorithm{"default", workspace}});
      step.tasks[t].algorithms = set->second;
    }
  }

  [[nodiscard]] Kernel prepare(const Step& step, TaskId task, std::size_t /*algorithm*/) override {
    context_->use_threads();
    return recipe_of(TaskView(step, task), context_).make();
  }

  void write_tensor(const Step& step, TensorId id, std::span<const float> logical, std::byte* address) override {
    const Tensor& tensor = step.tensor(id);
    if (const WeightLayout* layout = layout_of(step, tensor)) {
      check_size(tensor, logical.size());
      // oneDNN's interface has no const memory; a reorder only reads its source.
      return reorder(layout->logical, const_cast<float*>(logical.data()), layout->stored, address);
    }
    write_logical(tensor.shape, tensor.order, tensor.type, logical, address);
  }

  void read_tensor(const Step& step, TensorId id, const std::byte* address, std::span<float> logical) override {
    const Tensor& tensor = step.tensor(id);
    if (const WeightLayout* layout = layout_of(step, tensor)) {
      check_size(tensor, logical.size());
      // A copy, since binding a oneDNN memory object may write its padding.
      std::vector<std::byte> copy(address, address + layout->stored.get_size());
      return reorder(layout->stored, copy.data(), layout->logical, logical.data());
    }
    read_logical(tensor.shape, tensor.order, tensor.type, address, logical);
  }

  void pack(const Step& step, ParameterId parameter, std::span<const float> logical, std::byte* memory) const override {
    if (const WeightLayout* layout = context_->weight_layout(step.network, parameter))
      return reorder(layout->logical, const_cast<float*>(logical.data()), layout->stored, memory);
    Backend::pack(step, parameter, logical, memory);
  }
  void unpack(const Step& step, ParameterId parameter, const std::byte* memory,
              std::span<float> logical) const override {
    const WeightLayout* const layout = context_->weight_layout(step.network, parameter);
    if (layout == nullptr) return Backend::unpack(step, parameter, memory, logical);
    std::vector<std::byte> copy(memory, memory + layout->stored.get_size());
    reorder(layout->stored, copy.data(), layout->logical, logical.data());
  }

  [[nodiscard]] std::byte* allocate(Bytes bytes) override { return tide::allocate_host(bytes); }
  void release(std::byte* memory, Bytes bytes) noexcept override { tide::release_host(memory, bytes); }

 private:
  [[nodiscard]] const WeightLayout* layout_of(const Step& step, const Tensor& tensor) const {
    if (!tensor.parameter.valid()) return nullptr;
    return context_->weight_layout(step.network, tensor.parameter);
  }

  static void check_size(const Tensor& tensor, std::size_t given) {
    if (static_cast<std::size_t>(tensor.shape.elements()) != given)
      throw Error("a tensor of {} elements was given {} values", tensor.shape.elements(), given);
  }

  void reorder(const dnnl::memory::desc& from, void* source, const dnnl::memory::desc& to, void* target) const {
    context_->use_threads();
    dnnl::memory in(from, context_->engine(), source), out(to, context_->engine(), target);
    dnnl::stream stream = context_->stream();
    dnnl::reorder(in, out).execute(stream, in, out);
    stream.wait();
  }

  ContextPtr context_;
};

}  // namespace

// Batches are fp32 already, and a flattened value is the value itself.
Recipe cpu::input_recipe(const TaskView& view, const ContextPtr& /*context*/) { nothing_to_run(view); }
Recipe cpu::flatten_recipe(const TaskView& view, const ContextPtr& /*context*/) { nothing_to_run(view); }

std::unique_ptr<Backend> make_cpu_backend(int threads) { return std::make_unique<CpuBackend>(threads); }

}  // namespace tide
