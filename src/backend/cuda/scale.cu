// Parameters that are spread over a value, y = x * weight + bias: kernels, and the recipes that launch them.
#include "backend/cuda/recipe.h"
#include "backend/cuda/spread_sums.cuh"

namespace tide::cuda {
namespace {

template <typename Type>
struct ScaleWork {
  const Type* x;
  const float *weight, *bias;  // may be null
  Type* y;
  template <int width>
  __device__ void run(const SpreadIndex& s, const SpreadPlace& at) const {
    Pack<width> value = Pack<width>::load(x + at.whole);
    if (weight != nullptr) {
      const Pack<width> factor = load_spread<width>(weight + at.value[1], s.single[1]);
      for (int k = 0; k < width; ++k) value.v[k] *= factor.v[k];
    }
    if (bias != nullptr) {
      const Pack<width> shift = load_spread<width>(bias + at.value[1], s.single[1]);
      for (int k = 0; k < width; ++k) value.v[k] += shift.v[k];
    }
    value.store(y + at.whole);
  }
};

// dy and dy * x, summed over what a parameter was spread to; dx on the way.
template <typename Type>
struct ScaleTerms {
  const Type *x, *dy;
  const float* weight;  // may be null
  Type* dx;             // may be null
  static constexpr int kSums = 2, kRows = 4;

  template <int width>
  struct Fetched {
    Raw<Type, width> x, dy;
  };
  template <int width>
  __device__ Pack<width> start(std::int64_t target) const {
    if (weight != nullptr) return Pack<width>::load(weight + target);
    Pack<width> ones;
    for (int k = 0; k < width; ++k) ones.v[k] = 1.0F;
    return ones;
  }
  template <int width>
  __device__ Fetched<width> fetch(std::int64_t at) const {
    return {Raw<Type, width>::load(x + at), Raw<Type, width>::load(dy + at)};
  }
  template <int width>
  __device__ void add(const Pack<width>& factor, const Fetched<width>& fetched, std::int64_t at,
                      Pack<width>* sums) const {
    const Pack<width> value = Pack<width>::of(fetched.x), gradient = Pack<width>::of(fetched.dy);
    Pack<width> passed;
    for (int k = 0; k < width; ++k) {
      sums[0].v[k] += gradient.v[k] * value.v[k];
      sums[1].v[k] += gradient.v[k];
      passed.v[k] = gradient.v[k] * factor.v[k];
    }
    if (dx != nullptr) passed.store(dx + at);
  }
};

template <typename Type>
struct ScaleTerm {
  const Type *x, *dy;  // x: null for the bias
  __device__ double operator()(const SpreadPlace& at) const {
    const auto gradient = static_cast<double>(to_float(dy[at.whole]));
    return x != nullptr ? gradient * static_cast<double>(to_float(x[at.whole])) : gradient;
  }
};

Recipe scale_forward(const TaskView& view, const ContextPtr& context) {
  const Broadcast b = with_fewest_axes(scaled_values(view, true));
  const std::size_t x = view.read(Role::x), y = view.written(Role::y);
  const auto weight = view.find_read(Role::weight), bias = view.find_read(Role::bias);
  return recipe([=, element = element_of(view, y)](const Launch& launch) {
    with_element(element, [&](auto type) {
      using Type = decltype(type);
      const ScaleWork<Type> work{input_of<Type>(launch, x), weight ? input_of(launch, *weight) : nullptr,
                                 bias ? input_of(launch, *bias) : nullptr, output_of<Type>(launch, y)};
      const bool packed = is_packed(work.x) && is_packed(work.weight) && is_packed(work.bias) && is_packed(work.y);
      launch_spread<Type>(context->stream(), b, packed, work);
    });
    check(cudaGetLastError(), "a scale");
  });
}

struct ScalePositions {
  std::size_t x, dy;
  std::optional<std::size_t> weight, dx, d_weight, d_bias;
  bool add_weight, add_bias;

  explicit ScalePositions(const TaskView& view)
      : x(view.read(Role::x)),
        dy(view.read(Role::dy)),
        weight(view.find_read(Role::weight)),
        dx(view.find_written(Role::dx)),
        d_weight(view.find_written(Role::d_weight)),
        d_bias(view.find_written(Role::d_bias)),
        add_weight(d_weight && view.accumulates(*d_weight)),
        add_bias(d_bias && view.accumulates(*d_bias)) {}

  [[nodiscard]] SumTarget weight_target(const Launch& launch) const {
    return {d_weight ? launch.operands[*d_weight] : nullptr, Element::f32, add_weight};
  }
  [[nodiscard]] SumTarget bias_target(const Launch& launch) const {
    return {d_bias ? launch.operands[*d_bias] : nullptr, Element::f32, add_bias};
  }
  template <typename Type>
  [[nodiscard]] ScaleTerms<Type> terms(const Launch& launch) const {
    return {input_of<Type>(launch, x), input_of<Type>(launch, dy), weight ? input_of(launch, *weight) : nullptr,
            dx ? output_of<Type>(launch, *dx) : nullptr};
  }
};

// One pass makes all gradients where the sums are over one run of axes.
Recipe scale_backward_at_once(const TaskView& view, const ContextPtr& context, const MiddleSums& sums) {
  const ScalePositions p(view);
  const Element element = element_of(view, p.x);
  const auto kernel = [=](const Launch& launch) {
    check(with_element(element,
                       [&](auto type) {
                         using Type = decltype(type);
                         return launch_middle_sums<Type>(context->stream(), sums, p.terms<Type>(launch),
                                                         {p.weight_target(launch), p.bias_target(launch)},
                                                         launch.workspace);
                       }),
          "a scale");
  };
  return recipe(kernel, with_element(element, [&](auto type) { return middle_sums_bytes<decltype(type)>(sums, 2); }));
}

Recipe scale_backward(const TaskView& view, const ContextPtr& context) {
  const Broadcast b = with_fewest_axes(scaled_values(view, true));
  if (const auto sums = middle_sums(b, 1)) return scale_backward_at_once(view, context, *sums);
  const ScalePositions p(view);
  const AnySums sums = AnySums::of(b, 1);
  const Element element = element_of(view, p.x);
  const auto kernel = [=](const Launch& launch) {
    check(with_element(element,
                       [&](auto type) {
                         using Type = decltype(type);
                         const ScaleTerms<Type> all = p.terms<Type>(launch);
                         if (all.dx != nullptr)
                           launch_spread<Type>(context->stream(), b,
                                               is_packed(all.dy) && is_packed(all.weight) && is_packed(all.dx),
                                               ScaleWork<Type>{all.dy, all.weight, nullptr, all.dx});
                         const SumTarget d_weight = p.weight_target(launch), d_bias = p.bias_target(launch);
                         cudaError_t status = cudaGetLastError();
                         if (status == cudaSuccess && d_weight.address != nullptr)
                           status = launch_any_sums(context->stream(), sums, ScaleTerm<Type>{all.x, all.dy}, d_weight,
                                                    launch.workspace);
                         if (status == cudaSuccess && d_bias.address != nullptr)
                           status = launch_any_sums(context->stream(), sums, ScaleTerm<Type>{nullptr, all.dy}, d_bias,
                                                    launch.workspace);
                         return status;
                       }),
          "a scale");
  };
  return recipe(kernel, any_sums_bytes(sums));
}

}  // namespace

Recipe scale_recipe(const TaskView& view, const ContextPtr& context) {
  return view.is_forward() ? scale_forward(view, context) : scale_backward(view, context);
}

}  // namespace tide::cuda
