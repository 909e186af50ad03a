// Elements in other places, and whole samples or channels that are dropped.
#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"
#include "backend/rearrangement.h"
#include "base/random.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

Index source_of(const Rearrangement& r, Index place) {
  Index source = 0;
  for (int digit = r.digits; digit-- > 0;) {
    const auto d = static_cast<std::size_t>(digit);
    source += place % r.digit_extent[d] * r.in_stride[d];
    place /= r.digit_extent[d];
  }
  return source;
}

Recipe rearranged_recipe(const TaskView& view, const ContextPtr& context) {
  const Rearrangement r = rearrangement_of(view);
  const bool forward = view.is_forward();
  const std::size_t from = forward ? view.read(Role::x) : view.read(Role::dy);
  const std::size_t to = forward ? view.written(Role::y) : view.written(Role::dx);
  const Index count = view.input().elements(), inner = r.out_extent[static_cast<std::size_t>(r.out_rank - 1)];
  const int threads = team_for(count, threads_of(context));
  return recipe([=](const Launch& launch) {
    const auto* const x = input_of<float>(launch, from);
    auto* const y = output_of<float>(launch, to);
    parallel_ranges(threads, count / inner, kElementGrain / inner + 1, [&](Index begin, Index end) {
      for (Index line = begin; line < end; ++line) {
        Index rest = line, place = 0;
        for (int axis = r.out_rank - 2; axis >= 0; --axis) {
          const auto a = static_cast<std::size_t>(axis);
          place += rest % r.out_extent[a] * r.out_place[a];
          rest /= r.out_extent[a];
        }
        const Index step = r.out_place[static_cast<std::size_t>(r.out_rank - 1)];
        for (Index i = 0; i < inner; ++i) y[line * inner + i] = x[source_of(r, place + i * step)];
      }
    });
  });
}

}  // namespace

Recipe channel_shuffle_recipe(const TaskView& view, const ContextPtr& context) {
  return rearranged_recipe(view, context);
}
Recipe transpose_recipe(const TaskView& view, const ContextPtr& context) { return rearranged_recipe(view, context); }
Recipe reshape_recipe(const TaskView& view, const ContextPtr& context) { return rearranged_recipe(view, context); }

// Backward is forward with dy for x.
Recipe drop_path_recipe(const TaskView& view, const ContextPtr& context) {
  const auto& options = view.options<DropPathOptions>();
  const std::size_t from = view.is_forward() ? view.read(Role::x) : view.read(Role::dy);
  const std::size_t to = view.is_forward() ? view.written(Role::y) : view.written(Role::dx);
  const Shape shape = view.input();
  const auto rate = static_cast<float>(options.rate);
  const auto stream = view.random_stream();
  const bool per_channel = options.per_channel;
  const Index per_sample = shape.per_sample(), channels = shape.channels(), first = view.first_sample();
  const int threads = team_for(shape.elements(), threads_of(context));
  return recipe([=](const Launch& launch) {
    const auto* const x = input_of<float>(launch, from);
    auto* const y = output_of<float>(launch, to);
    parallel_parts(threads, shape.batch(), [&](Index n) {
      const auto sample = static_cast<std::uint64_t>(launch.state->first_sample + first + n);
      const auto factor = [&](Index unit) {
        const Random4 bits = random_block(launch.state->seed, RandomUse::dropout, launch.state->step, stream, sample,
                                          static_cast<std::uint64_t>(unit / 4));
        return to_unit(bits[static_cast<std::size_t>(unit % 4)]) >= rate ? 1.0F / (1.0F - rate) : 0.0F;
      };
      const float* const source = x + n * per_sample;
      float* const target = y + n * per_sample;
      if (!per_channel) {
        const float all = factor(0);
        for (Index i = 0; i < per_sample; ++i) target[i] = all == 0.0F ? 0.0F : source[i] * all;
        return;
      }
      for (Index c = 0; c < channels; ++c) {
        const float of_channel = factor(c);
        for (Index i = c; i < per_sample; i += channels) target[i] = of_channel == 0.0F ? 0.0F : source[i] * of_channel;
      }
    });
  });
}

}  // namespace tide::cpu
