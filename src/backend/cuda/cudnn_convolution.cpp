#include "backend/cuda/cudnn_convolution.h"

#include <algorithm>
#include <optional>

namespace tide::cuda {
namespace {

constexpr std::size_t kMostPlans = 5;
enum TensorName : std::int64_t { kLarge = 1, kSmall = 2, kWeights = 3, kBias = 4, kProduct = 5 };
constexpr std::array<std::int64_t, 4> kTensorNames{kLarge, kSmall, kWeights, kBias};

using Numbers = std::vector<std::int64_t>;

Descriptor make(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnnBackendCreateDescriptor(type, &made), "describing a convolution");
  return Descriptor(made);
}
void set(const Descriptor& descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         std::int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(descriptor.get(), name, type, count, values), "describing a convolution");
}
void set(const Descriptor& descriptor, cudnnBackendAttributeName_t name, const Numbers& values) {
  set(descriptor, name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}
void set(const Descriptor& descriptor, cudnnBackendAttributeName_t name, const Descriptor& value) {
  const cudnnBackendDescriptor_t raw = value.get();
  set(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
}
void finalize(const Descriptor& descriptor) {
  check(cudnnBackendFinalize(descriptor.get()), "describing a convolution");
}

Descriptor tensor(std::int64_t name, Element element, const Numbers& dimensions, const Numbers& strides) {
  Descriptor made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const cudnnDataType_t type = element == Element::f32 ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
  const std::int64_t alignment = 16;
  set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, dimensions);
  set(made, CUDNN_ATTR_TENSOR_STRIDES, strides);
  set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name);
  set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  const bool is_virtual = name == kProduct;
  set(made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  finalize(made);
  return made;
}

// Dimensions in cuDNN's order (NCHW), strides of NHWC memory.
Descriptor channels_last(std::int64_t name, Element element, std::int64_t n, std::int64_t c, std::int64_t h,
                         std::int64_t w) {
  return tensor(name, element, {n, c, h, w}, {c * h * w, 1, c * w, c});
}

Descriptor window_of(const Window& w) {
  Descriptor made = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::int64_t dimensions = 2;
  set(made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  set(made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  set(made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
  set(made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {w.pad_top, w.pad_left});
  set(made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {w.pad_bottom, w.pad_right});
  set(made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {w.stride_height, w.stride_width});
  set(made, CUDNN_ATTR_CONVOLUTION_DILATIONS, {w.dilation_height, w.dilation_width});
  finalize(made);
  return made;
}

// The names that one kind of operation has for its descriptor and attributes.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, window, large, small, weights;
};
OperationNames names_of(Product product) {
  switch (product) {
    case Product::to_small:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W};
    case Product::to_large:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W};
    case Product::to_weights: break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW};
}

// small = product + bias.
Descriptor add_bias(const ConvolutionProblem& p, const Descriptor& product, const Descriptor& small) {
  const Descriptor addition = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  set(addition, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  set(addition, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
  finalize(addition);
  Descriptor operation = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, addition);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, product);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, channels_last(kBias, Element::f32, 1, p.small.channels(), 1, 1));
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, small);
  return operation;
}

// Null where the library does not have the combination of types.
Descriptor graph_of(const ConvolutionProblem& p, cudnnHandle_t handle) {
  const OperationNames names = names_of(p.product);
  const Descriptor large =
      channels_last(kLarge, p.element, p.large.batch(), p.large.channels(), p.large.height(), p.large.width());
  const Descriptor small =
      channels_last(kSmall, p.element, p.small.batch(), p.small.channels(), p.small.height(), p.small.width());
  const Descriptor weights = channels_last(kWeights, p.weights, p.small.channels(), p.large.channels() / p.groups,
                                           p.window.kernel_height, p.window.kernel_width);
  const Descriptor operation = make(names.type);
  const float one = 1, zero = 0;
  set(operation, names.alpha, CUDNN_TYPE_FLOAT, 1, &one);
  set(operation, names.beta, CUDNN_TYPE_FLOAT, 1, &zero);
  set(operation, names.window, window_of(p.window));
  set(operation, names.large, large);
  const Descriptor product =
      channels_last(kProduct, Element::f32, p.small.batch(), p.small.channels(), p.small.height(), p.small.width());
  set(operation, names.small, p.bias ? product : small);
  set(operation, names.weights, weights);
  if (cudnnBackendFinalize(operation.get()) != CUDNN_STATUS_SUCCESS) return nullptr;
  Descriptor graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  std::vector<cudnnBackendDescriptor_t> operations{operation.get()};
  const Descriptor addition = p.bias ? add_bias(p, product, small) : nullptr;
  if (p.bias) {
    if (cudnnBackendFinalize(addition.get()) != CUDNN_STATUS_SUCCESS) return nullptr;
    operations.push_back(addition.get());
  }
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(operations.size()),
      operations.data());
  if (cudnnBackendFinalize(graph.get()) != CUDNN_STATUS_SUCCESS) return nullptr;
  return graph;
}

// The engine configurations of one heuristic, best first; none where it has nothing to say.
std::vector<Descriptor> suggestions(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  const Descriptor heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  std::int64_t count = 0;
  if (cudnnBackendFinalize(heuristic.get()) != CUDNN_STATUS_SUCCESS ||
      cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                               nullptr) != CUDNN_STATUS_SUCCESS)
    return {};
  std::vector<Descriptor> made;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    made.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(made.back().get());
  }
  const cudnnStatus_t status = cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data());
  made.resize(status == CUDNN_STATUS_SUCCESS ? static_cast<std::size_t>(count) : 0);
  return made;
}

struct Engine {
  std::int64_t number = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::vector<cudnnBackendBehaviorNote_t> behaviours;

  explicit Engine(const Descriptor& configuration) {
    const Descriptor engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t raw = engine.get();
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                   &count, &raw),
          "asking for an engine");
    check(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &number),
          "asking for an engine");
    notes.resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
    check(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data()),
          "asking for an engine");
    notes.resize(static_cast<std::size_t>(count));
    behaviours.resize(CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
    check(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                   CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &count, behaviours.data()),
          "asking for an engine");
    behaviours.resize(static_cast<std::size_t>(count));
  }
  [[nodiscard]] bool has(cudnnBackendNumericalNote_t note) const {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  }
  // Compiling takes a second per algorithm, for shapes that precompiled ones have too.
  [[nodiscard]] bool compiles() const {
    return std::find(behaviours.begin(), behaviours.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != behaviours.end();
  }
  [[nodiscard]] bool allowed(const Context& context, Element element) const {
    if (compiles() || has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
    if (context.deterministic() && has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
    // Matrix units take floats as TF32; transforms lose digits beyond our tolerance for fp32.
    return element == Element::bf16 || context.precision() != Precision::fp32 ||
           !(has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || has(CUDNN_NUMERICAL_NOTE_WINOGRAD) ||
             has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4) || has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) ||
             has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13));
  }
};

// Null for configurations that turn out not to work.
ConvolutionPlanPtr plan_of(const Descriptor& configuration, cudnnHandle_t handle, std::string name) {
  Descriptor plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (cudnnBackendFinalize(plan.get()) != CUDNN_STATUS_SUCCESS) return nullptr;
  std::int64_t workspace = 0, count = 0;
  check(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                 &workspace),
        "asking for a workspace");
  return std::make_shared<const ConvolutionPlan>(std::move(plan), std::move(name), static_cast<std::size_t>(workspace));
}

Signature signature_of(const ConvolutionProblem& p) {
  const Window& w = p.window;
  return {static_cast<std::int64_t>(p.product),
          static_cast<std::int64_t>(p.element),
          static_cast<std::int64_t>(p.weights),
          p.bias ? 1 : 0,
          p.groups,
          p.large.batch(),
          p.large.channels(),
          p.large.height(),
          p.large.width(),
          p.small.channels(),
          p.small.height(),
          p.small.width(),
          w.kernel_height,
          w.kernel_width,
          w.stride_height,
          w.stride_width,
          w.pad_top,
          w.pad_left,
          w.pad_bottom,
          w.pad_right,
          w.dilation_height,
          w.dilation_width};
}

// The window with the same padding on both sides, or nothing where that is another convolution:
// several of the library's engines take the padding before for the one behind.
std::optional<Window> symmetric(const ConvolutionProblem& p) {
  Window w = p.window;
  const auto outputs = [](std::int64_t input, std::int64_t pad, std::int64_t kernel, std::int64_t dilation,
                          std::int64_t stride) {
    const std::int64_t room = input + 2 * pad - (kernel - 1) * dilation - 1;
    return room < 0 ? 0 : room / stride + 1;
  };
  if (outputs(p.large.height(), w.pad_top, w.kernel_height, w.dilation_height, w.stride_height) != p.small.height() ||
      outputs(p.large.width(), w.pad_left, w.kernel_width, w.dilation_width, w.stride_width) != p.small.width())
    return std::nullopt;
  w.pad_bottom = w.pad_top;
  w.pad_right = w.pad_left;
  return w;
}

}  // namespace

const std::vector<ConvolutionPlanPtr>& ConvolutionPlan::find(Context& context, const ConvolutionProblem& given) {
  const auto [entry, is_new] = context.convolutions.try_emplace(signature_of(given));
  std::vector<ConvolutionPlanPtr>& plans = entry->second;
  const std::optional<Window> window = symmetric(given);
  if (!is_new || !window) return plans;
  ConvolutionProblem problem = given;
  problem.window = *window;
  const Descriptor graph = graph_of(problem, context.cudnn());
  if (graph == nullptr) return plans;
  // Its slow engines are for problems that cannot be had in another way.
  const bool last_resort = !problem.bias && problem.weights == problem.element;
  std::map<std::int64_t, int> seen;  // configurations by engine
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (mode == CUDNN_HEUR_MODE_FALLBACK && (!last_resort || !plans.empty())) break;
    for (const Descriptor& configuration : suggestions(graph, mode)) {
      if (plans.size() == kMostPlans) break;
      const Engine engine(configuration);
      if (!engine.allowed(context, problem.element)) continue;
      const int nth = ++seen[engine.number];
      std::string name =
          nth == 1 ? fmt::format("cudnn-{}", engine.number) : fmt::format("cudnn-{}.{}", engine.number, nth);
      if (engine.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) name += "-nondeterministic";
      if (auto plan = plan_of(configuration, context.cudnn(), std::move(name))) plans.push_back(std::move(plan));
    }
  }
  return plans;
}

void ConvolutionCall::run(const Context& context, void* large, void* small, void* weights, void* bias,
                          void* workspace) {
  const std::array<void*, 5> addresses{large, small, weights, bias, workspace};
  if (pack_ == nullptr || bound_ != addresses) {
    const std::int64_t tensors = bias == nullptr ? 3 : 4;
    pack_ = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(pack_, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, tensors, kTensorNames.data());
    set(pack_, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, tensors, addresses.data());
    set(pack_, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finalize(pack_);
    bound_ = addresses;
  }
  check(cudnnBackendExecute(context.cudnn(), plan_->descriptor(), pack_.get()), "a convolution");
}

}  // namespace tide::cuda
