// Optimizers with the semantics of PyTorch's, and the norm for clipping. They run over the
// whole storage of a parameter: padding in its layout is zero and stays zero.
#include <cmath>

#include "backend/cpu/clones.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

// Rates of one update, in the precision of the weights.
struct Rates {
  float rate, clip, decay;                   // decay: added to the gradient
  float momentum, of_gradient, of_velocity;  // what the weight moves by
  float beta1, rest1, beta2, rest2, epsilon;
  float shrink;                 // adamw: factor of the weight
  float step, deviation_scale;  // adam: bias-corrected
};

// One parameter: gradient, old values, new values. Old and new may be one.
struct Arrays {
  const float *gradient, *weight, *first, *second;
  float *new_weight, *new_first, *new_second;
};

TIDE_CLONES void sgd(const Rates& rates, const Arrays& a, Index begin, Index end) {
  const Rates r = rates;
  const float *gradient = a.gradient, *weight = a.weight;
  float* new_weight = a.new_weight;
#pragma omp simd
  for (Index i = begin; i < end; ++i) new_weight[i] = weight[i] - r.rate * (r.clip * gradient[i] + r.decay * weight[i]);
}

// Nesterov's too: it looks ahead by one more step of the velocity.
TIDE_CLONES void momentum(const Rates& rates, const Arrays& a, Index begin, Index end) {
  const Rates r = rates;
  const float *gradient = a.gradient, *weight = a.weight, *first = a.first;
  float *new_weight = a.new_weight, *new_first = a.new_first;
#pragma omp simd
  for (Index i = begin; i < end; ++i) {
    const float g = r.clip * gradient[i] + r.decay * weight[i];
    const float velocity = r.momentum * first[i] + g;
    new_first[i] = velocity;
    new_weight[i] = weight[i] - r.rate * (r.of_gradient * g + r.of_velocity * velocity);
  }
}

TIDE_CLONES void adam(const Rates& rates, const Arrays& a, Index begin, Index end) {
  const Rates r = rates;
  const float *gradient = a.gradient, *weight = a.weight, *first = a.first, *second = a.second;
  float *new_weight = a.new_weight, *new_first = a.new_first, *new_second = a.new_second;
#pragma omp simd
  for (Index i = begin; i < end; ++i) {
    const float g = r.clip * gradient[i] + r.decay * weight[i];
    const float mean = r.beta1 * first[i] + r.rest1 * g;
    const float square = r.beta2 * second[i] + r.rest2 * g * g;
    new_first[i] = mean;
    new_second[i] = square;
    new_weight[i] = r.shrink * weight[i] - r.step * mean / (std::sqrt(square) * r.deviation_scale + r.epsilon);
  }
}

TIDE_CLONES double sum_of_squares(const float* x, Index count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Index i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

Rates rates_of(const OptimizerOptions& options, const StepState& state, const TaskView::TrainedAt& at, double clip) {
  const double rate = state.learning_rate * at.rate, decay = options.weight_decay * at.decay;
  const bool decoupled = options.kind == OptimizerKind::adamw;
  const auto count = static_cast<double>(state.update_count);
  Rates r{};
  r.rate = static_cast<float>(rate);
  r.clip = static_cast<float>(clip);
  r.decay = decoupled ? 0.0F : static_cast<float>(decay);
  const bool nesterov = options.kind == OptimizerKind::nesterov;
  r.momentum = static_cast<float>(options.momentum);
  r.of_gradient = nesterov ? 1.0F : 0.0F;
  r.of_velocity = nesterov ? r.momentum : 1.0F;
  r.beta1 = static_cast<float>(options.beta1);
  r.rest1 = static_cast<float>(1 - options.beta1);
  r.beta2 = static_cast<float>(options.beta2);
  r.rest2 = static_cast<float>(1 - options.beta2);
  r.epsilon = static_cast<float>(options.epsilon);
  r.shrink = decoupled ? static_cast<float>(1 - rate * decay) : 1.0F;
  r.step = static_cast<float>(rate / (1 - std::pow(options.beta1, count)));
  r.deviation_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, count)));
  return r;
}

Index stored_floats(const TaskView& view, std::size_t position) {
  return bytes_of(view.step(), view.operand(position)).count() / static_cast<Index>(sizeof(float));
}

}  // namespace

Recipe update_recipe(const TaskView& view, const ContextPtr& context) {
  const int threads = threads_of(context);
  struct Positions {
    std::size_t gradient, weight, new_weight;
    std::optional<std::size_t> first, second, new_first, new_second;
    Index count;
    TaskView::TrainedAt at;
  };
  std::vector<Positions> parameters;
  for (std::size_t nth = 0; nth < view.all_read(Role::gradient).size(); ++nth) {
    const std::size_t weight = view.read(Role::weight, nth);
    parameters.push_back({view.read(Role::gradient, nth), weight, view.written(Role::weight, nth),
                          view.find_read(Role::first_moment, nth), view.find_read(Role::second_moment, nth),
                          view.find_written(Role::first_moment, nth), view.find_written(Role::second_moment, nth),
                          stored_floats(view, weight), view.trained_at(nth)});
  }
  const OptimizerOptions options = view.step().options.optimizer;
  const auto norm = view.find_read(Role::norm);
  const bool has_velocity = options.kind == OptimizerKind::momentum || options.kind == OptimizerKind::nesterov;
  const auto function = options.kind == OptimizerKind::sgd ? sgd : has_velocity ? momentum : adam;
  return recipe([=, parameters = std::move(parameters)](const Launch& launch) {
    double clip = 1;
    if (norm)
      clip =
          std::min(1.0, options.clip_norm / (std::sqrt(static_cast<double>(*input_of<float>(launch, *norm))) + 1e-6));
    const auto old = [&](auto position) { return position ? input_of<float>(launch, *position) : nullptr; };
    const auto made = [&](auto position) { return position ? output_of<float>(launch, *position) : nullptr; };
    for (const Positions& p : parameters) {
      const Rates rates = rates_of(options, *launch.state, p.at, clip);
      const Arrays arrays{input_of<float>(launch, p.gradient),
                          input_of<float>(launch, p.weight),
                          old(p.first),
                          old(p.second),
                          output_of<float>(launch, p.new_weight),
                          made(p.new_first),
                          made(p.new_second)};
      parallel_ranges(threads, p.count, kElementGrain,
                      [&](Index begin, Index end) { function(rates, arrays, begin, end); });
    }
  });
}

Recipe norm_recipe(const TaskView& view, const ContextPtr& context) {
  const int threads = threads_of(context);
  // Fixed pieces, summed in order: the same bits whatever the number of threads.
  constexpr Index kPiece = Index{1} << 16;
  struct Piece {
    std::size_t position;
    Index begin, count;
  };
  std::vector<Piece> pieces;
  for (const std::size_t position : view.all_read(Role::gradient)) {
    const Index floats = stored_floats(view, position);
    for (Index begin = 0; begin < floats; begin += kPiece)
      pieces.push_back({position, begin, std::min(kPiece, floats - begin)});
  }
  const Bytes workspace(static_cast<Index>(pieces.size() * sizeof(double)));
  const std::size_t norm = view.written(Role::norm);
  return recipe(
      [pieces, norm, threads](const Launch& launch) {
        auto* sums = reinterpret_cast<double*>(launch.workspace);
        parallel_parts(threads, static_cast<Index>(pieces.size()), [&](Index part) {
          const Piece& piece = pieces[static_cast<std::size_t>(part)];
          sums[part] = sum_of_squares(input_of<float>(launch, piece.position) + piece.begin, piece.count);
        });
        double total = 0;
        for (std::size_t i = 0; i < pieces.size(); ++i) total += sums[i];
        *output_of<float>(launch, norm) = static_cast<float>(total);
      },
      workspace);
}

}  // namespace tide::cpu
