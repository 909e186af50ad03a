// Group normalization over NHWC, with the loops of batch_norm_rows.h: a sample is a matrix of rows x channels,
// and its statistics are those of channels merged by group. Samples are cut into parts where there are fewer
// of them than threads; each worker goes through its parts one after the other.
#include <cmath>
#include <optional>

#include "backend/cpu/batch_norm_rows.h"
#include "backend/cpu/recipe.h"

namespace tide::cpu {
namespace {

struct Sizes {
  Sizes(const TaskView& view, int threads)
      : rows(view.input().per_sample() / view.input().channels()),
        channels(view.input().channels()),
        groups(view.options<GroupNormOptions>().groups),
        samples(view.input().batch()),
        parts(std::min<Index>(rows, (threads + samples - 1) / samples)),
        units(samples * parts),
        workers(std::min<Index>(threads, units)) {}

  [[nodiscard]] Index per_group() const { return channels / groups; }
  // The rows of a unit, counted through all samples.
  [[nodiscard]] Range rows_of(Index unit) const {
    const Range range = part_of(rows, unit % parts, parts);
    return {unit / parts * rows + range.begin, unit / parts * rows + range.end};
  }

  Index rows, channels, groups, samples;  // rows: of one sample
  Index parts, units, workers;            // parts: of one sample
};

// A worker's own.
struct Scratch {
  double *first, *second;                     // by channel, of one unit
  double *all_first, *all_second;             // of all its units: gradients of scale and shift
  float *block_first, *block_second, *pivot;  // of a block of rows
  float *mean, *factor, *slope, *offset;      // by channel, of one sample

  static Index bytes(Index channels) { return Bytes(channels * (4 * 8 + 7 * 4)).aligned(64).count(); }
  static Scratch of(std::byte* workspace, Index worker, Index channels) {
    auto* doubles = reinterpret_cast<double*>(workspace + worker * bytes(channels));
    auto* floats = reinterpret_cast<float*>(doubles + 4 * channels);
    const auto next = [&](auto*& at) { return std::exchange(at, at + channels); };
    Scratch s{};
    for (double** to : {&s.first, &s.second, &s.all_first, &s.all_second}) *to = next(doubles);
    for (float** to : {&s.block_first, &s.block_second, &s.pivot, &s.mean, &s.factor, &s.slope, &s.offset})
      *to = next(floats);
    return s;
  }
};

// Two numbers for each group of each unit, behind the workers' own.
double* results_of(std::byte* workspace, const Sizes& s) {
  return reinterpret_cast<double*>(workspace + s.workers * Scratch::bytes(s.channels));
}
Index workspace_bytes(const Sizes& s) { return s.workers * Scratch::bytes(s.channels) + s.units * s.groups * 16; }

// Calls work(unit, scratch) for all units.
template <typename Work>
void for_units(std::byte* workspace, const Sizes& s, int threads, const Work& work) {
  parallel_parts(threads, s.workers, [&](Index worker) {
    const Scratch scratch = Scratch::of(workspace, worker, s.channels);
    const Range range = part_of(s.units, worker, s.workers);
    for (Index unit = range.begin; unit < range.end; ++unit) work(unit, scratch);
  });
}

void clear(double* a, double* b, Index count) {
  std::fill_n(a, count, 0.0);
  std::fill_n(b, count, 0.0);
}

// Statistics of values that come in pieces (Chan et al.).
struct Moments {
  double count = 0, mean = 0, squares = 0;
  void add(double more, double its_mean, double its_squares) {
    const double weight = more / (count + more), difference = its_mean - mean;
    mean += difference * weight;
    squares += its_squares + difference * difference * count * weight;
    count += more;
  }
};

void take_statistics(const float* x, const Sizes& s, std::byte* workspace, int threads) {
  double* results = results_of(workspace, s);
  for_units(workspace, s, threads, [&](Index unit, const Scratch& own) {
    const Range range = s.rows_of(unit);
    clear(own.first, own.second, s.channels);
    const Index size = rows_per_block(s.channels);
    for (Index row = range.begin; row < range.end; row += size)
      add_block(x + row * s.channels, std::min(size, range.end - row), s.channels,
                static_cast<double>(row - range.begin), own.block_first, own.block_second, own.pivot, own.first,
                own.second);
    for (Index g = 0; g < s.groups; ++g) {
      Moments group;
      for (Index c = g * s.per_group(); c < (g + 1) * s.per_group(); ++c)
        group.add(static_cast<double>(range.end - range.begin), own.first[c], own.second[c]);
      results[2 * (unit * s.groups + g)] = group.mean;
      results[2 * (unit * s.groups + g) + 1] = group.squares;
    }
  });
}

void merge_statistics(const Sizes& s, const double* results, double epsilon, float* mean, float* deviation) {
  for (Index n = 0; n < s.samples; ++n)
    for (Index g = 0; g < s.groups; ++g) {
      Moments group;
      for (Index unit = n * s.parts; unit < (n + 1) * s.parts; ++unit) {
        const Range range = s.rows_of(unit);
        const double* result = results + 2 * (unit * s.groups + g);
        group.add(static_cast<double>((range.end - range.begin) * s.per_group()), result[0], result[1]);
      }
      mean[n * s.groups + g] = static_cast<float>(group.mean);
      deviation[n * s.groups + g] = static_cast<float>(1 / std::sqrt(group.squares / group.count + epsilon));
    }
}

// The same for forward, replay and evaluation, so that they give the same bits.
void normalize(const Sizes& s, std::byte* workspace, int threads, const float* x, const float* mean,
               const float* deviation, const float* scale, const float* shift, float* y) {
  const bool streamed = y != x && s.samples * s.rows * s.channels >= kStreamedFloats;
  for_units(workspace, s, threads, [&](Index unit, const Scratch& own) {
    const Index first_group = unit / s.parts * s.groups;
    for (Index c = 0; c < s.channels; ++c) {
      own.mean[c] = mean[first_group + c / s.per_group()];
      own.factor[c] = scale[c] * deviation[first_group + c / s.per_group()];
    }
    const Range range = s.rows_of(unit);
    write_rows(y, range.begin, range.end, s.channels, streamed, [&](Index row, Index size, float* target) {
      normalize_rows(x + row * s.channels, target, size, s.channels, own.mean, own.factor, shift);
    });
  });
}

Recipe forward_recipe(const TaskView& view, const Sizes& s, int threads) {
  const double epsilon = view.options<GroupNormOptions>().epsilon;
  const std::size_t x = view.read(Role::x), scale = view.read(Role::weight), shift = view.read(Role::bias);
  const std::size_t y = view.written(Role::y);
  const auto known_mean = view.find_read(Role::mean), known_deviation = view.find_read(Role::inverse_deviation);
  const auto saved_mean = view.find_written(Role::mean), saved_deviation = view.find_written(Role::inverse_deviation);
  const Index own_statistics = known_mean || saved_mean ? 0 : 2 * s.samples * s.groups;
  const auto kernel = [=](const Launch& launch) {
    const auto* from = input_of<float>(launch, x);
    auto* mean = reinterpret_cast<float*>(launch.workspace + workspace_bytes(s));
    float* deviation = mean + s.samples * s.groups;
    if (known_mean || saved_mean) {
      mean = output_of<float>(launch, known_mean ? *known_mean : *saved_mean);
      deviation = output_of<float>(launch, known_mean ? *known_deviation : *saved_deviation);
    }
    if (!known_mean) {
      take_statistics(from, s, launch.workspace, threads);
      merge_statistics(s, results_of(launch.workspace, s), epsilon, mean, deviation);
    }
    normalize(s, launch.workspace, threads, from, mean, deviation, input_of<float>(launch, scale),
              input_of<float>(launch, shift), output_of<float>(launch, y));
  };
  return recipe(kernel, Bytes(workspace_bytes(s) + own_statistics * 4));
}

// By group and unit, the sums of scale * dy and of scale * dy * (x - mean); by worker and channel, what the
// gradients of scale and shift are made of.
void sum_gradients(const Sizes& s, std::byte* workspace, int threads, const float* x, const float* dy,
                   const float* mean, const float* deviation, const float* scale) {
  double* results = results_of(workspace, s);
  parallel_parts(threads, s.workers, [&](Index worker) {
    const Scratch own = Scratch::of(workspace, worker, s.channels);
    clear(own.all_first, own.all_second, s.channels);
  });
  for_units(workspace, s, threads, [&](Index unit, const Scratch& own) {
    const Range range = s.rows_of(unit);
    const Index first_group = unit / s.parts * s.groups, size = rows_per_block(s.channels);
    for (Index c = 0; c < s.channels; ++c) own.mean[c] = mean[first_group + c / s.per_group()];
    clear(own.first, own.second, s.channels);
    for (Index row = range.begin; row < range.end; row += size)
      add_gradient_block(x + row * s.channels, dy + row * s.channels, own.mean, std::min(size, range.end - row),
                         s.channels, own.block_first, own.block_second, own.first, own.second);
    for (Index g = 0; g < s.groups; ++g) {
      const auto inverse = static_cast<double>(deviation[first_group + g]);
      double sum = 0, product = 0;
      for (Index c = g * s.per_group(); c < (g + 1) * s.per_group(); ++c) {
        sum += static_cast<double>(scale[c]) * own.first[c];
        product += static_cast<double>(scale[c]) * own.second[c];
        own.all_first[c] += own.first[c];
        own.all_second[c] += own.second[c] * inverse;
      }
      results[2 * (unit * s.groups + g)] = sum;
      results[2 * (unit * s.groups + g) + 1] = product;
    }
  });
}

// dx = factor * dy + slope * (x - mean) + offset.
void spread_gradients(const Sizes& s, std::byte* workspace, int threads, const float* x, const float* dy,
                      const float* mean, const float* deviation, const float* scale, float* dx) {
  const double* results = results_of(workspace, s);
  const auto count = static_cast<double>(s.rows * s.per_group());
  const bool streamed = dx != x && dx != dy && s.samples * s.rows * s.channels >= kStreamedFloats;
  for_units(workspace, s, threads, [&](Index unit, const Scratch& own) {
    const Index n = unit / s.parts;
    for (Index g = 0; g < s.groups; ++g) {
      double sum = 0, product = 0;
      for (Index other = n * s.parts; other < (n + 1) * s.parts; ++other) {
        sum += results[2 * (other * s.groups + g)];
        product += results[2 * (other * s.groups + g) + 1];
      }
      const auto inverse = static_cast<double>(deviation[n * s.groups + g]);
      for (Index c = g * s.per_group(); c < (g + 1) * s.per_group(); ++c) {
        own.mean[c] = mean[n * s.groups + g];
        own.factor[c] = static_cast<float>(static_cast<double>(scale[c]) * inverse);
        own.slope[c] = static_cast<float>(-inverse * inverse * inverse * product / count);
        own.offset[c] = static_cast<float>(-inverse * sum / count);
      }
    }
    const Range range = s.rows_of(unit);
    write_rows(dx, range.begin, range.end, s.channels, streamed, [&](Index row, Index size, float* target) {
      gradient_rows(x + row * s.channels, dy + row * s.channels, target, size, s.channels, own.mean, own.factor,
                    own.slope, own.offset);
    });
  });
}

Recipe backward_recipe(const TaskView& view, const Sizes& s, int threads) {
  const std::size_t x = view.read(Role::x), dy = view.read(Role::dy), scale = view.read(Role::weight);
  const std::size_t mean = view.read(Role::mean), deviation = view.read(Role::inverse_deviation);
  const auto dx = view.find_written(Role::dx);
  const auto d_scale = view.find_written(Role::d_weight), d_shift = view.find_written(Role::d_bias);
  const bool add_scale = d_scale && view.accumulates(*d_scale), add_shift = d_shift && view.accumulates(*d_shift);
  const auto kernel = [=](const Launch& launch) {
    const auto *from = input_of<float>(launch, x), *gradient = input_of<float>(launch, dy);
    const auto *means = input_of<float>(launch, mean), *deviations = input_of<float>(launch, deviation);
    const auto* scales = input_of<float>(launch, scale);
    sum_gradients(s, launch.workspace, threads, from, gradient, means, deviations, scales);
    const auto write = [&](std::size_t position, bool adds, double* Scratch::*sums) {
      auto* to = output_of<float>(launch, position);
      for (Index c = 0; c < s.channels; ++c) {
        double sum = 0;
        for (Index worker = 0; worker < s.workers; ++worker)
          sum += (Scratch::of(launch.workspace, worker, s.channels).*sums)[c];
        to[c] = static_cast<float>(sum) + (adds ? to[c] : 0.0F);
      }
    };
    if (d_scale) write(*d_scale, add_scale, &Scratch::all_second);
    if (d_shift) write(*d_shift, add_shift, &Scratch::all_first);
    if (dx)
      spread_gradients(s, launch.workspace, threads, from, gradient, means, deviations, scales,
                       output_of<float>(launch, *dx));
  };
  return recipe(kernel, Bytes(workspace_bytes(s)));
}

}  // namespace

Recipe group_norm_recipe(const TaskView& view, const ContextPtr& context) {
  const int threads = team_for(view.input().elements(), threads_of(context));
  const Sizes sizes(view, threads);
  return view.is_forward() ? forward_recipe(view, sizes, threads) : backward_recipe(view, sizes, threads);
}

}  // namespace tide::cpu
