// Losses that compare element by element: kernels, and the recipes that launch them. Their targets are floats in the
// 32 bits of labels.
#include "backend/cuda/loss_metric.cuh"
#include "backend/cuda/recipe.h"

namespace tide::cuda {
namespace {

struct LogisticLoss {
  __device__ static float answer(float x) { return 1.0F / (1.0F + expf(-x)); }
  __device__ static double loss(double x, double wanted) {
    // Not fmax, which would hide a NaN.
    return (x < 0 ? 0 : x) - x * wanted + log1p(exp(-fabs(x)));
  }
  __device__ static float slope(float y, float wanted) { return y - wanted; }
  __device__ static bool correct(float x, float wanted) { return (x > 0.0F) == (wanted > 0.5F); }
};

struct SquaredLoss {
  __device__ static float answer(float x) { return x; }
  __device__ static double loss(double x, double wanted) { return (x - wanted) * (x - wanted); }
  __device__ static float slope(float y, float wanted) { return 2.0F * (y - wanted); }
  __device__ static bool correct(float /*x*/, float /*wanted*/) { return false; }
};

struct ElementLossShape {
  std::int64_t samples, per_sample, labels_per_sample, label_offset;
  double weight;
  [[nodiscard]] constexpr std::int64_t count() const { return samples * per_sample; }
};

// Elements of one block, as threads go through them.
constexpr std::int64_t kElementsPerBlock = 4 * kThreads;

__device__ float target_of(const ElementLossShape& s, const float* labels, std::int64_t at) {
  const std::int64_t sample = at / s.per_sample;
  return labels[sample * s.labels_per_sample + s.label_offset + (at - sample * s.per_sample)];
}

template <typename Loss, typename Type>
__global__ void element_loss_kernel(ElementLossShape s, const Type* x, const float* labels, float* y,
                                    LossMetric* partial) {
  __shared__ LossMetric shared[kThreads];
  LossMetric mine{};
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kElementsPerBlock;
  const std::int64_t end = min(s.count(), first + kElementsPerBlock);
  for (std::int64_t at = first + threadIdx.x; at < end; at += kThreads) {
    const float value = to_float(x[at]), wanted = target_of(s, labels, at);
    mine.loss += s.weight * Loss::loss(static_cast<double>(value), static_cast<double>(wanted));
    mine.correct += Loss::correct(value, wanted) ? 1 : 0;
    y[at] = Loss::answer(value);
  }
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      shared[threadIdx.x].loss += shared[threadIdx.x + half].loss;
      shared[threadIdx.x].correct += shared[threadIdx.x + half].correct;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = shared[0];
}

template <typename Loss, typename Type>
__global__ void element_loss_backward_kernel(ElementLossShape s, const DeviceState* state, const float* y,
                                             const float* labels, Type* dx) {
  const std::int64_t at = thread_index();
  if (at >= s.count()) return;
  const auto factor = static_cast<float>(gradient_scale_of(*state, s.weight, s.per_sample));
  put(dx + at, factor * Loss::slope(y[at], target_of(s, labels, at)));
}

template <typename Loss>
Recipe element_loss_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<ElementLossOptions>();
  const std::size_t labels = view.read(Role::labels);
  const ElementLossShape s{view.input().batch(), view.input().per_sample(), view.shape(labels).per_sample(),
                           options.label_offset, options.weight};
  if (view.is_forward()) {
    const std::size_t x = view.read(Role::x), y = view.written(Role::y), metric = view.written(Role::metric);
    const unsigned blocks = blocks_for(s.count(), kElementsPerBlock);
    const auto kernel = [=, element = element_of(view, x), adds = view.accumulates(metric)](const Launch& launch) {
      auto* const partial = reinterpret_cast<LossMetric*>(launch.workspace);
      with_element(element, [&](auto type) {
        element_loss_kernel<Loss><<<blocks, kThreads, 0, context->stream()>>>(
            s, input_of<decltype(type)>(launch, x), input_of(launch, labels), output_of(launch, y), partial);
      });
      check(launch_merge_metric(context->stream(), partial, blocks, output_of(launch, metric), adds), "a loss");
    };
    return recipe(kernel, blocks * sizeof(LossMetric));
  }
  const std::size_t y = view.read(Role::y), dx = view.written(Role::dx);
  return recipe([=, element = element_of(view, dx)](const Launch& launch) {
    context->set_state(*launch.state);
    with_element(element, [&](auto type) {
      element_loss_backward_kernel<Loss><<<blocks_for(s.count()), kThreads, 0, context->stream()>>>(
          s, context->state(), input_of(launch, y), input_of(launch, labels), output_of<decltype(type)>(launch, dx));
    });
    check(cudaGetLastError(), "a loss");
  });
}

// One block, whose threads keep to their order.
__global__ void merge_metric_kernel(const LossMetric* partial, std::int64_t count, float* metric, bool adds) {
  __shared__ LossMetric shared[kThreads];
  LossMetric mine{};
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    mine.loss += partial[i].loss;
    mine.correct += partial[i].correct;
  }
  shared[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  LossMetric total{};
  for (const LossMetric& one : shared) {
    total.loss += one.loss;
    total.correct += one.correct;
  }
  metric[0] = static_cast<float>(total.loss) + (adds ? metric[0] : 0.0F);
  metric[1] = static_cast<float>(total.correct) + (adds ? metric[1] : 0.0F);
}

}  // namespace

cudaError_t launch_merge_metric(cudaStream_t stream, const LossMetric* partial, std::int64_t count, float* metric,
                                bool adds) {
  merge_metric_kernel<<<1, kThreads, 0, stream>>>(partial, count, metric, adds);
  return cudaGetLastError();
}

Recipe sigmoid_cross_entropy_recipe(const TaskView& view, const ContextPtr& context) {
  return element_loss_recipe<LogisticLoss>(view, context);
}
Recipe mean_squared_error_recipe(const TaskView& view, const ContextPtr& context) {
  return element_loss_recipe<SquaredLoss>(view, context);
}

}  // namespace tide::cuda
