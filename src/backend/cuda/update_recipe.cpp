#include "backend/cuda/recipe.h"
#include "backend/cuda/update.h"

namespace tide::cuda {
namespace {

std::int64_t stored_floats(const TaskView& view, std::size_t position) {
  return bytes_of(view.step(), view.operand(position)).count() / static_cast<std::int64_t>(sizeof(float));
}

UpdateOptions update_options(const OptimizerOptions& options) {
  const OptimizerKind kind = options.kind;
  const bool has_velocity = kind == OptimizerKind::momentum || kind == OptimizerKind::nesterov;
  return {kind == OptimizerKind::sgd ? UpdateRule::sgd
          : has_velocity             ? UpdateRule::momentum
                                     : UpdateRule::adam,
          kind == OptimizerKind::nesterov,
          kind == OptimizerKind::adamw,
          options.momentum,
          options.beta1,
          options.beta2,
          options.epsilon,
          options.weight_decay,
          options.clip_norm};
}

// Where one parameter's operands stand.
struct UpdatedParameter {
  UpdatedParameter(const TaskView& view, std::size_t nth)
      : gradient(view.read(Role::gradient, nth)),
        weight(view.read(Role::weight, nth)),
        new_weight(view.written(Role::weight, nth)),
        first(view.find_read(Role::first_moment, nth)),
        second(view.find_read(Role::second_moment, nth)),
        new_first(view.find_written(Role::first_moment, nth)),
        new_second(view.find_written(Role::second_moment, nth)),
        count(stored_floats(view, weight)),
        at(view.trained_at(nth)) {}

  [[nodiscard]] UpdateArrays arrays(const Launch& launch) const {
    const auto place = [&](auto position) { return position ? output_of(launch, *position) : nullptr; };
    return {input_of(launch, gradient),    input_of(launch, weight), place(first),      place(second),
            output_of(launch, new_weight), place(new_first),         place(new_second), static_cast<float>(at.rate),
            static_cast<float>(at.decay)};
  }

  std::size_t gradient, weight, new_weight;
  std::optional<std::size_t> first, second, new_first, new_second;
  std::int64_t count;
  TaskView::TrainedAt at;
};

}  // namespace

Recipe update_recipe(const TaskView& view, const ContextPtr& context) {
  const UpdateOptions options = update_options(view.step().options.optimizer);
  std::vector<UpdatedParameter> parameters;
  for (std::size_t nth = 0; nth < view.all_read(Role::gradient).size(); ++nth) parameters.emplace_back(view, nth);
  const auto norm = view.find_read(Role::norm);
  return recipe([=, parameters = std::move(parameters)](const Launch& launch) {
    context->set_state(*launch.state);
    const float* of_all = norm ? input_of(launch, *norm) : nullptr;
    if (parameters.size() == 1) {
      check(launch_update(context->stream(), options, context->state(), of_all, parameters[0].arrays(launch),
                          parameters[0].count),
            "an update");
      return;
    }
    for (std::size_t begin = 0; begin < parameters.size(); begin += kUpdatesPerLaunch) {
      UpdateGroup group{};
      for (std::size_t p = begin; p < parameters.size() && group.size < kUpdatesPerLaunch; ++p, ++group.size) {
        group.arrays[group.size] = parameters[p].arrays(launch);
        group.counts[group.size] = static_cast<std::int32_t>(parameters[p].count);
      }
      check(launch_updates(context->stream(), options, context->state(), of_all, group), "an update");
    }
  });
}

Recipe norm_recipe(const TaskView& view, const ContextPtr& context) {
  struct Piecewise {
    std::size_t position;
    std::int64_t count;
    int pieces;
  };
  std::vector<Piecewise> gradients;
  std::int64_t pieces = 0;
  for (const std::size_t position : view.all_read(Role::gradient)) {
    const std::int64_t count = stored_floats(view, position);
    gradients.push_back({position, count, static_cast<int>((count + kSquaresPerPiece - 1) / kSquaresPerPiece)});
    pieces += gradients.back().pieces;
  }
  const std::size_t norm = view.written(Role::norm);
  return recipe(
      [=](const Launch& launch) {
        auto* partial = reinterpret_cast<double*>(launch.workspace);
        for (std::size_t begin = 0; begin < gradients.size(); begin += kGradientsPerLaunch) {
          Gradients group{};
          for (std::size_t g = begin; g < gradients.size() && group.size < kGradientsPerLaunch; ++g) {
            const int i = group.size++;
            group.values[i] = input_of(launch, gradients[g].position);
            group.counts[i] = gradients[g].count;
            group.first_piece[i + 1] = group.first_piece[i] + gradients[g].pieces;
          }
          check(launch_squares(context->stream(), group, partial), "the gradients' norm");
          partial += group.first_piece[group.size];
        }
        check(launch_merge_squares(context->stream(), reinterpret_cast<double*>(launch.workspace), pieces,
                                   output_of(launch, norm)),
              "the gradients' norm");
      },
      static_cast<std::size_t>(pieces) * sizeof(double));
}

}  // namespace tide::cuda
