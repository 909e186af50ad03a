// Two values that are spread to one shape: kernels, and the recipes that launch them.
#include "backend/cuda/elementwise.cuh"
#include "backend/cuda/recipe.h"
#include "backend/cuda/spread_sums.cuh"

namespace tide::cuda {
namespace {

using F = CombineFunction;

template <F function>
struct Combined {
  __device__ float operator()(float a, float b) const {
    if constexpr (function == F::add) return a + b;
    if constexpr (function == F::subtract) return a - b;
    if constexpr (function == F::multiply) return a * b;
    return a / b;
  }
};
// What the gradient is multiplied by for input `which`.
template <F function>
__device__ float combined_slope(int which, float a, float b) {
  if constexpr (function == F::add) return 1.0F;
  if constexpr (function == F::subtract) return which == 0 ? 1.0F : -1.0F;
  if constexpr (function == F::multiply) return which == 0 ? b : a;
  return which == 0 ? 1.0F / b : -a / (b * b);
}
constexpr bool reads_inputs(F function) { return function == F::multiply || function == F::divide; }

// Calls `use` with the function as a type.
template <typename Use>
auto with_combination(F function, Use use) {
  switch (function) {
    case F::add: return use(std::integral_constant<F, F::add>{});
    case F::subtract: return use(std::integral_constant<F, F::subtract>{});
    case F::multiply: return use(std::integral_constant<F, F::multiply>{});
    case F::divide: break;
  }
  return use(std::integral_constant<F, F::divide>{});
}

template <typename Type, F function>
struct CombineWork {
  const Type *a, *b;
  Type* y;
  template <int width>
  __device__ void run(const SpreadIndex& s, const SpreadPlace& at) const {
    Pack<width> value = load_spread<width>(a + at.value[0], s.single[0]);
    const Pack<width> other = load_spread<width>(b + at.value[1], s.single[1]);
    for (int k = 0; k < width; ++k) value.v[k] = Combined<function>{}(value.v[k], other.v[k]);
    value.store(y + at.whole);
  }
};

// Gradients of inputs that are as large as the result; null where they are not, or not wanted.
template <typename Type, F function>
struct CombineGradientWork {
  const Type *a, *b, *dy;
  Type* target[2];
  template <int width>
  __device__ void run(const SpreadIndex& s, const SpreadPlace& at) const {
    const Pack<width> gradient = Pack<width>::load(dy + at.whole);
    Pack<width> first{}, second{};
    if constexpr (reads_inputs(function)) {
      first = load_spread<width>(a + at.value[0], s.single[0]);
      second = load_spread<width>(b + at.value[1], s.single[1]);
    }
    for (int which = 0; which < 2; ++which) {
      if (target[which] == nullptr) continue;
      Pack<width> made;
      for (int k = 0; k < width; ++k)
        made.v[k] = gradient.v[k] * combined_slope<function>(which, first.v[k], second.v[k]);
      made.store(target[which] + at.whole);
    }
  }
};

// The gradient of the small one of two, and what the large one gets on the way.
template <typename Type, F function>
struct CombineTerms {
  const Type *small, *large, *dy;
  Type* d_large;  // may be null
  int which;      // the small one is
  static constexpr int kSums = 1, kRows = 4;

  template <int width>
  struct Fetched {
    Raw<Type, width> dy, large;
  };
  template <int width>
  __device__ Pack<width> start(std::int64_t target) const {
    if constexpr (reads_inputs(function)) return Pack<width>::load(small + target);
    return {};
  }
  template <int width>
  __device__ Fetched<width> fetch(std::int64_t at) const {
    Fetched<width> fetched;
    fetched.dy = Raw<Type, width>::load(dy + at);
    if constexpr (reads_inputs(function)) fetched.large = Raw<Type, width>::load(large + at);
    return fetched;
  }
  template <int width>
  __device__ void add(const Pack<width>& own, const Fetched<width>& fetched, std::int64_t at, Pack<width>* sums) const {
    const Pack<width> gradient = Pack<width>::of(fetched.dy);
    Pack<width> other{}, passed;
    if constexpr (reads_inputs(function)) other = Pack<width>::of(fetched.large);
    for (int k = 0; k < width; ++k) {
      const float a = which == 0 ? own.v[k] : other.v[k], b = which == 0 ? other.v[k] : own.v[k];
      sums[0].v[k] += gradient.v[k] * combined_slope<function>(which, a, b);
      passed.v[k] = gradient.v[k] * combined_slope<function>(1 - which, a, b);
    }
    if (d_large != nullptr) passed.store(d_large + at);
  }
};

template <typename Type, F function>
struct CombineTerm {
  const Type *a, *b, *dy;
  int which;
  __device__ double operator()(const SpreadPlace& at) const {
    float first = 0, second = 0;
    if constexpr (reads_inputs(function)) {
      first = to_float(a[at.value[0]]);
      second = to_float(b[at.value[1]]);
    }
    return static_cast<double>(to_float(dy[at.whole])) *
           static_cast<double>(combined_slope<function>(which, first, second));
  }
};

Recipe combine_forward(const TaskView& view, const ContextPtr& context) {
  const Broadcast b = with_fewest_axes(combined_values(view));
  const std::size_t first = view.read(Role::x, 0), second = view.read(Role::x, 1), y = view.written(Role::y);
  const bool equal = b.is_whole(0) && b.is_whole(1);
  return recipe([=, function = view.options<CombineOptions>().function,
                 element = element_of(view, y)](const Launch& launch) {
    with_combination(function, [&](auto f) {
      if (equal) {
        check(binary(context->stream(), element, launch.operands[first], launch.operands[second], launch.operands[y],
                     b.elements(), Combined<f>{}),
              "an elementwise kernel");
        return;
      }
      with_element(element, [&](auto type) {
        using Type = decltype(type);
        const CombineWork<Type, f> work{input_of<Type>(launch, first), input_of<Type>(launch, second),
                                        output_of<Type>(launch, y)};
        launch_spread<Type>(context->stream(), b, is_packed(work.a) && is_packed(work.b) && is_packed(work.y), work);
      });
    });
    check(cudaGetLastError(), "an elementwise kernel");
  });
}

// How the gradients of both inputs are made: those that are whole element by element, sums for the others. Where one
// of each is wanted and the sums are over one run of axes, one pass makes both.
struct CombinePlan {
  struct Input {
    std::optional<std::size_t> target;
    bool whole = false;
    std::optional<MiddleSums> middle = {};
    AnySums any = {};
  };
  Broadcast b;
  std::array<Input, 2> inputs;

  explicit CombinePlan(const TaskView& view) : b(with_fewest_axes(combined_values(view))) {
    for (const std::size_t position : view.all_written(Role::dx))
      inputs[static_cast<std::size_t>(view.operand(position).index)].target = position;
    for (std::size_t which = 0; which < 2; ++which) inputs[which].whole = b.is_whole(which);
    for (std::size_t which = 0; which < 2; ++which) {
      if (inputs[which].whole) continue;
      if (inputs[1 - which].whole) inputs[which].middle = middle_sums(b, which);
      inputs[which].any = AnySums::of(b, which);
    }
  }
  [[nodiscard]] bool sums(std::size_t which) const { return inputs[which].target && !inputs[which].whole; }
  // Whether the sums for the other input make this one's gradient too.
  [[nodiscard]] bool is_passed(std::size_t which) const {
    return inputs[which].whole && sums(1 - which) && inputs[1 - which].middle;
  }
  [[nodiscard]] std::size_t bytes(Element element) const {
    std::size_t most = 0;
    for (std::size_t which = 0; which < 2; ++which)
      if (sums(which)) most = std::max(most, bytes_of_sums(which, element));
    return most;
  }

 private:
  [[nodiscard]] std::size_t bytes_of_sums(std::size_t which, Element element) const {
    const Input& input = inputs[which];
    if (!input.middle) return any_sums_bytes(input.any);
    return with_element(element, [&](auto type) { return middle_sums_bytes<decltype(type)>(*input.middle, 1); });
  }
};

template <typename Type, F function>
struct CombineBackward {
  const CombinePlan& plan;
  cudaStream_t stream;
  const Type *a, *b, *dy;
  std::array<Type*, 2> targets;
  Element element;
  std::byte* workspace;

  void run() const {
    Type* by_element[2] = {};
    for (std::size_t which = 0; which < 2; ++which)
      if (plan.inputs[which].whole && !plan.is_passed(which)) by_element[which] = targets[which];
    if (by_element[0] != nullptr || by_element[1] != nullptr) elements(by_element[0], by_element[1]);
    for (std::size_t which = 0; which < 2; ++which)
      if (plan.sums(which)) sums(which);
  }

 private:
  void elements(Type* first, Type* second) const {
    bool packed = is_packed(dy) && is_packed(first) && is_packed(second);
    if constexpr (reads_inputs(function)) packed = packed && is_packed(a) && is_packed(b);
    launch_spread<Type>(stream, plan.b, packed, CombineGradientWork<Type, function>{a, b, dy, {first, second}});
    check(cudaGetLastError(), "an elementwise kernel");
  }
  void sums(std::size_t which) const {
    const CombinePlan::Input& input = plan.inputs[which];
    const SumTarget target{targets[which], element};
    const int number = static_cast<int>(which);
    if (!input.middle) {
      check(launch_any_sums(stream, input.any, CombineTerm<Type, function>{a, b, dy, number}, target, workspace),
            "sums of a gradient");
      return;
    }
    const CombineTerms<Type, function> terms{which == 0 ? a : b, which == 0 ? b : a, dy, targets[1 - which], number};
    check(launch_middle_sums<Type>(stream, *input.middle, terms, {target}, workspace), "sums of a gradient");
  }
};

Recipe combine_backward(const TaskView& view, const ContextPtr& context) {
  const CombinePlan plan(view);
  const std::size_t dy = view.read(Role::dy);
  const auto first = view.find_read(Role::x, 0), second = view.find_read(Role::x, 1);
  const Element element = element_of(view, dy);
  const auto kernel = [=, function = view.options<CombineOptions>().function](const Launch& launch) {
    with_combination(function, [&](auto f) {
      with_element(element, [&](auto type) {
        using Type = decltype(type);
        const auto target = [&](std::size_t which) {
          return plan.inputs[which].target ? output_of<Type>(launch, *plan.inputs[which].target) : nullptr;
        };
        CombineBackward<Type, f>{plan,
                                 context->stream(),
                                 first ? input_of<Type>(launch, *first) : nullptr,
                                 second ? input_of<Type>(launch, *second) : nullptr,
                                 input_of<Type>(launch, dy),
                                 {target(0), target(1)},
                                 element,
                                 launch.workspace}
            .run();
      });
    });
  };
  return recipe(kernel, plan.bytes(element));
}

}  // namespace

Recipe combine_recipe(const TaskView& view, const ContextPtr& context) {
  return view.is_forward() ? combine_forward(view, context) : combine_backward(view, context);
}

}  // namespace tide::cuda
