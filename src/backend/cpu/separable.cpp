// Means, adaptive pools, resizes and pads: each axis by itself (axis_map.h).
#include "backend/separable.h"

#include <algorithm>

#include "backend/cpu/clones.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

using Index = std::int64_t;

// For each place that is made, the places that it is made from, and their weights.
struct Terms {
  std::vector<std::size_t> first;  // of each, and the end
  std::vector<Index> place;
  std::vector<float> weight;

  void add(Index from, float share) {
    place.push_back(from);
    weight.push_back(share);
  }
};

Terms terms_of(const AxisMap& map, bool forward) {
  Terms terms;
  for (int made = 0; made < (forward ? map.out : map.in); ++made) {
    terms.first.push_back(terms.place.size());
    const AxisMap::Range range = forward ? map.sources(made) : map.targets(made);
    for (int from = range.begin; from < range.end; ++from)
      if (const float share = forward ? map.weight(made, from) : map.weight(from, made); share != 0)
        terms.add(from, share);
  }
  terms.first.push_back(terms.place.size());
  return terms;
}

bool is_kept(const AxisMap& map) { return map.kind == AxisMap::Kind::constant && map.in == map.out && map.before == 0; }

TIDE_CLONES void add_scaled(const float* from, float share, float* to, Index count) {
#pragma omp simd
  for (Index c = 0; c < count; ++c) to[c] += share * from[c];
}

struct Sizes {
  Index samples, channels, height, width;
};

Recipe separable_recipe(const TaskView& view, const ContextPtr& context) {
  const SeparableMaps maps = separable_maps(view);
  const bool forward = view.is_forward(), keeps = is_kept(maps.channels);
  const std::size_t from = forward ? view.read(Role::x) : view.read(Role::dy);
  const std::size_t to = forward ? view.written(Role::y) : view.written(Role::dx);
  const Index samples = view.input().batch();
  Sizes in{samples, maps.channels.in, maps.height.in, maps.width.in};
  Sizes out{samples, maps.channels.out, maps.height.out, maps.width.out};
  if (!forward) std::swap(in, out);
  const auto rows = std::make_shared<const Terms>(terms_of(maps.height, forward));
  const auto columns = std::make_shared<const Terms>(terms_of(maps.width, forward));
  const auto channels = std::make_shared<const Terms>(terms_of(maps.channels, forward));
  const float empty = forward ? maps.value : 0.0F;
  const int threads = team_for(std::max(view.input().elements(), view.output().elements()), threads_of(context));
  return recipe([=](const Launch& launch) {
    const auto* const x = input_of<float>(launch, from);
    auto* const y = output_of<float>(launch, to);
    parallel_ranges(threads, samples * out.height, 1, [&](Index begin, Index end) {
      for (Index line = begin; line < end; ++line) {
        const Index n = line / out.height;
        const auto h = static_cast<std::size_t>(line % out.height);
        for (Index w = 0; w < out.width; ++w) {
          const auto v = static_cast<std::size_t>(w);
          float* const made = y + (line * out.width + w) * out.channels;
          const bool is_empty = rows->first[h] == rows->first[h + 1] || columns->first[v] == columns->first[v + 1];
          std::fill_n(made, out.channels, is_empty ? empty : 0.0F);
          if (is_empty) continue;
          for (std::size_t r = rows->first[h]; r < rows->first[h + 1]; ++r)
            for (std::size_t c = columns->first[v]; c < columns->first[v + 1]; ++c) {
              const float* const source =
                  x + ((n * in.height + rows->place[r]) * in.width + columns->place[c]) * in.channels;
              const float share = rows->weight[r] * columns->weight[c];
              if (keeps) {
                add_scaled(source, share, made, out.channels);
                continue;
              }
              for (Index k = 0; k < out.channels; ++k)
                for (std::size_t t = channels->first[static_cast<std::size_t>(k)];
                     t < channels->first[static_cast<std::size_t>(k) + 1]; ++t)
                  made[k] += share * channels->weight[t] * source[channels->place[t]];
            }
          if (keeps || empty == 0) continue;
          for (Index k = 0; k < out.channels; ++k)
            if (channels->first[static_cast<std::size_t>(k)] == channels->first[static_cast<std::size_t>(k) + 1])
              made[k] = empty;
        }
      }
    });
  });
}

// Over any axes: the result as a value that is spread over the input.
struct SpreadMean {
  Index samples = 0, inner = 0, lines = 0, result_per_sample = 0;
  int rank = 0;
  std::array<Index, Shape::kMostRank> extent = {}, stride = {};  // as the input lies; of the result
  double count = 1;
};

SpreadMean spread_mean(const TaskView& view) {
  const auto& options = view.options<MeanOptions>();
  const Shape shape = view.input();
  const MemoryOrder order = MemoryOrder::channels_last(shape.rank());
  const auto averaged = [&](std::size_t axis) {
    return std::find(options.axes.begin(), options.axes.end(), static_cast<std::int64_t>(axis)) != options.axes.end();
  };
  // The result lies channels last too, among the axes that are left.
  std::vector<std::int64_t> left;
  std::vector<std::size_t> place_of(shape.rank(), 0);
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (!averaged(axis))
      place_of[axis] = left.size(), left.push_back(shape.extent(axis));
    else if (options.keep)
      left.push_back(1);
  const Shape result{std::span<const std::int64_t>(left)};
  const Strides strides = strides_of(result, MemoryOrder::channels_last(result.rank()));
  SpreadMean mean;
  mean.samples = shape.batch();
  mean.rank = static_cast<int>(shape.rank());
  mean.lines = 1;
  for (std::size_t place = 0; place < shape.rank(); ++place) {
    const std::size_t axis = order.axis(place);
    mean.extent[place] = shape.extent(axis);
    mean.stride[place] = averaged(axis) ? 0 : strides[place_of[axis]];
    if (averaged(axis)) mean.count *= static_cast<double>(shape.extent(axis));
    if (place > 0 && place + 1 < shape.rank()) mean.lines *= shape.extent(axis);
  }
  mean.inner = mean.extent[shape.rank() - 1];
  mean.result_per_sample = result.per_sample();
  return mean;
}

// visit(offset in the input's sample, offset in the result's) for each line of neighbours.
template <typename Visit>
void for_each_mean_line(const SpreadMean& m, const Visit& visit) {
  std::array<Index, Shape::kMostRank> at{};
  Index result = 0;
  for (Index line = 0; line < m.lines; ++line) {
    visit(line * m.inner, result);
    for (int axis = m.rank - 2; axis >= 1; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      result += m.stride[a];
      if (++at[a] < m.extent[a]) break;
      result -= m.stride[a] * at[a];
      at[a] = 0;
    }
  }
}

Recipe any_mean_recipe(const TaskView& view, const ContextPtr& context) {
  const SpreadMean m = spread_mean(view);
  const int threads = team_for(view.input().elements(), threads_of(context));
  const Index per_sample = m.lines * m.inner, step = m.stride[static_cast<std::size_t>(m.rank - 1)];
  if (!view.is_forward()) {
    const std::size_t dy = view.read(Role::dy), dx = view.written(Role::dx);
    return recipe([=](const Launch& launch) {
      const auto share = static_cast<float>(1 / m.count);
      parallel_parts(threads, m.samples, [&](Index n) {
        const float* const from = input_of<float>(launch, dy) + n * m.result_per_sample;
        float* const to = output_of<float>(launch, dx) + n * per_sample;
        for_each_mean_line(m, [&](Index input, Index result) {
          for (Index i = 0; i < m.inner; ++i) to[input + i] = from[result + i * step] * share;
        });
      });
    });
  }
  const std::size_t x = view.read(Role::x), y = view.written(Role::y);
  const Index workers = std::min<Index>(threads, m.samples);
  const auto kernel = [=](const Launch& launch) {
    parallel_parts(threads, workers, [&](Index worker) {
      auto* const sums = reinterpret_cast<double*>(launch.workspace) + worker * m.result_per_sample;
      const Range samples = part_of(m.samples, worker, workers);
      for (Index n = samples.begin; n < samples.end; ++n) {
        std::fill_n(sums, m.result_per_sample, 0.0);
        const float* const from = input_of<float>(launch, x) + n * per_sample;
        for_each_mean_line(m, [&](Index input, Index result) {
          for (Index i = 0; i < m.inner; ++i) sums[result + i * step] += static_cast<double>(from[input + i]);
        });
        float* const to = output_of<float>(launch, y) + n * m.result_per_sample;
        for (Index i = 0; i < m.result_per_sample; ++i) to[i] = static_cast<float>(sums[i] / m.count);
      }
    });
  };
  return recipe(kernel, Bytes(workers * m.result_per_sample * 8));
}

}  // namespace

Recipe mean_recipe(const TaskView& view, const ContextPtr& context) { return any_mean_recipe(view, context); }
Recipe adaptive_average_pool_recipe(const TaskView& view, const ContextPtr& context) {
  return separable_recipe(view, context);
}
Recipe resize_recipe(const TaskView& view, const ContextPtr& context) { return separable_recipe(view, context); }
Recipe pad_recipe(const TaskView& view, const ContextPtr& context) { return separable_recipe(view, context); }

}  // namespace tide::cpu
