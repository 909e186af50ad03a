// Functions of one value, of two that are spread to one shape, and scales.
#include <cmath>
#include <numbers>

#include "backend/reference/coordinates.h"
#include "backend/reference/functions.h"
#include "backend/reference/task.h"

namespace tide::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }
double normal_share(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double gelu_argument(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }

// A NaN passes.
double clipped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

}  // namespace

double activate(const ActivationOptions& o, double x) {
  switch (o.function) {
    case ActivationFunction::clip: return clipped(x, o.alpha, o.beta);
    case ActivationFunction::leaky_relu: return x > 0 ? x : o.alpha * x;
    case ActivationFunction::elu: return x > 0 ? x : o.alpha * std::expm1(x);
    case ActivationFunction::silu: return x * sigmoid(x);
    case ActivationFunction::gelu: return x * normal_share(x);
    case ActivationFunction::gelu_tanh: return 0.5 * x * (1 + std::tanh(gelu_argument(x)));
    case ActivationFunction::hard_sigmoid: return clipped(o.alpha * x + o.beta, 0, 1);
    case ActivationFunction::hard_swish: return x * clipped(x / 6 + 0.5, 0, 1);
    case ActivationFunction::mish: return x * std::tanh(softplus(x));
    case ActivationFunction::softplus: return o.alpha * x > o.beta ? x : std::log1p(std::exp(o.alpha * x)) / o.alpha;
    case ActivationFunction::affine: return o.alpha * x + o.beta;
    case ActivationFunction::square: return x * x;
    case ActivationFunction::exp: return std::exp(x);
    case ActivationFunction::sqrt: return std::sqrt(x);
    case ActivationFunction::abs: return std::abs(x);
  }
  return x;
}

double activation_slope(const ActivationOptions& o, double x) {
  switch (o.function) {
    case ActivationFunction::clip: return x > o.alpha && x < o.beta ? 1 : 0;
    case ActivationFunction::leaky_relu: return x > 0 ? 1 : o.alpha;
    case ActivationFunction::elu: return x > 0 ? 1 : o.alpha * std::exp(x);
    case ActivationFunction::silu: return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
    case ActivationFunction::gelu: return normal_share(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    case ActivationFunction::gelu_tanh: {
      const double t = std::tanh(gelu_argument(x));
      return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
    }
    case ActivationFunction::hard_sigmoid: {
      const double line = o.alpha * x + o.beta;
      return line > 0 && line < 1 ? o.alpha : 0;
    }
    case ActivationFunction::hard_swish: return x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1;
    case ActivationFunction::mish: {
      const double t = std::tanh(softplus(x));
      return t + x * (1 - t * t) * sigmoid(x);
    }
    case ActivationFunction::softplus: return o.alpha * x > o.beta ? 1 : sigmoid(o.alpha * x);
    case ActivationFunction::affine: return o.alpha;
    case ActivationFunction::square: return 2 * x;
    case ActivationFunction::exp: return std::exp(x);
    case ActivationFunction::sqrt: return 0.5 / std::sqrt(x);
    case ActivationFunction::abs: return x > 0 ? 1 : x < 0 ? -1 : 0;
  }
  return 1;
}

namespace {

ActivationOptions as_activation(const BatchNormOptions& options) {
  ActivationOptions result;
  if (options.fused == FusedFunction::silu) result.function = ActivationFunction::silu;
  if (options.fused == FusedFunction::hard_swish) result.function = ActivationFunction::hard_swish;
  if (options.fused == FusedFunction::clip)
    result = {ActivationFunction::clip, options.fused_minimum, options.fused_maximum};
  return result;
}

// The slope of functions that are told apart by their result.
double slope_of_result(const ActivationOptions& o, double y) {
  switch (o.function) {
    case ActivationFunction::clip: return y > o.alpha && y < o.beta ? 1 : 0;
    case ActivationFunction::leaky_relu: return y > 0 ? 1 : o.alpha;
    case ActivationFunction::elu: return y > 0 ? 1 : y + o.alpha;
    case ActivationFunction::hard_sigmoid: return y > 0 && y < 1 ? o.alpha : 0;
    case ActivationFunction::exp: return y;
    case ActivationFunction::sqrt: return 0.5 / y;
    default: throw Error("the slope of {} does not follow from its result", enum_name(o.function));
  }
}

double combined(CombineFunction function, double a, double b) {
  switch (function) {
    case CombineFunction::add: return a + b;
    case CombineFunction::subtract: return a - b;
    case CombineFunction::multiply: return a * b;
    case CombineFunction::divide: return a / b;
  }
  return a;
}

}  // namespace

double apply_fused(const BatchNormOptions& options, double x) {
  if (options.fused == FusedFunction::none) return x;
  if (options.fused == FusedFunction::relu) return std::max(x, 0.0);
  return activate(as_activation(options), x);
}

double fused_slope(const BatchNormOptions& options, double x) {
  if (options.fused == FusedFunction::none) return 1;
  if (options.fused == FusedFunction::relu) return x > 0 ? 1 : 0;
  return activation_slope(as_activation(options), x);
}

void run_activation(const ReferenceTask& task) {
  const auto& options = task.view.options<ActivationOptions>();
  if (task.view.is_forward()) {
    const Values& x = task.in(Role::x);
    Values& y = task.out(Role::y);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = activate(options, x[i]);
    return;
  }
  const Values& dy = task.in(Role::dy);
  Values& dx = task.out(Role::dx);
  const auto x = task.view.find_read(Role::x), y = task.view.find_read(Role::y);
  for (std::size_t i = 0; i < dy.size(); ++i)
    dx[i] = dy[i] * (x   ? activation_slope(options, (*task.operands[*x])[i])
                     : y ? slope_of_result(options, (*task.operands[*y])[i])
                         : activation_slope(options, 0));
}

void run_combine(const ReferenceTask& task) {
  const CombineFunction function = task.view.options<CombineOptions>().function;
  const Coordinates whole(task.view.output());
  const Coordinates inputs[] = {Coordinates(image_like(task.view.input(0), whole.shape())),
                                Coordinates(image_like(task.view.input(1), whole.shape()))};
  if (task.view.is_forward()) {
    const Values &a = task.in(Role::x, 0), &b = task.in(Role::x, 1);
    Values& y = task.out(Role::y);
    whole.for_each([&](const Place& place) {
      y[whole.at(place)] = combined(function, a[inputs[0].spread_at(place)], b[inputs[1].spread_at(place)]);
    });
    return;
  }
  const Values& dy = task.in(Role::dy);
  const bool reads = task.view.find_read(Role::x).has_value();
  const std::vector<std::size_t> positions = task.view.all_written(Role::dx);
  for (std::size_t p = 0; p < positions.size(); ++p) {
    const auto which = static_cast<std::size_t>(task.view.operand(positions[p]).index);
    Values& dx = task.out(Role::dx, p);
    whole.for_each([&](const Place& place) {
      double slope = 1;
      if (reads) {
        const double a = task.in(Role::x, 0)[inputs[0].spread_at(place)];
        const double b = task.in(Role::x, 1)[inputs[1].spread_at(place)];
        if (function == CombineFunction::multiply) slope = which == 0 ? b : a;
        if (function == CombineFunction::divide) slope = which == 0 ? 1 / b : -a / (b * b);
      }
      if (function == CombineFunction::subtract && which == 1) slope = -1;
      dx[inputs[which].spread_at(place)] += slope * dy[whole.at(place)];
    });
  }
}

// A parameter over some axes lies in its logical order.
void run_scale(const ReferenceTask& task) {
  const auto& options = task.view.options<ScaleOptions>();
  const Coordinates whole(task.view.input());
  Shape spread = whole.shape().with_batch(1);
  for (std::size_t axis = 1; axis < spread.rank(); ++axis)
    if (std::find(options.axes.begin(), options.axes.end(), static_cast<std::int64_t>(axis)) == options.axes.end())
      spread = spread.with_extent(axis, 1);
  const Coordinates parameter(spread, MemoryOrder::row_major(spread.rank()));
  const bool has_weight = task.view.find_read(Role::weight).has_value();
  const auto weight = [&](const Place& place) {
    return has_weight ? task.in(Role::weight)[parameter.spread_at(place)] : 1.0;
  };
  const Values& x = task.in(Role::x);
  if (task.view.is_forward()) {
    Values& y = task.out(Role::y);
    const bool has_bias = task.view.find_read(Role::bias).has_value();
    whole.for_each([&](const Place& place) {
      y[whole.at(place)] =
          x[whole.at(place)] * weight(place) + (has_bias ? task.in(Role::bias)[parameter.spread_at(place)] : 0.0);
    });
    return;
  }
  const Values& dy = task.in(Role::dy);
  Values* const dx = task.writes(Role::dx) ? &task.out(Role::dx) : nullptr;
  Values* const d_weight = task.writes(Role::d_weight) ? &task.out(Role::d_weight) : nullptr;
  Values* const d_bias = task.writes(Role::d_bias) ? &task.out(Role::d_bias) : nullptr;
  whole.for_each([&](const Place& place) {
    const std::size_t i = whole.at(place), p = parameter.spread_at(place);
    if (dx != nullptr) (*dx)[i] = dy[i] * weight(place);
    if (d_weight != nullptr) (*d_weight)[p] += dy[i] * x[i];
    if (d_bias != nullptr) (*d_bias)[p] += dy[i];
  });
}

}  // namespace tide::reference
