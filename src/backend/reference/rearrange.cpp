// Layers whose results are weighted sums of single elements: each says which, and backward goes the same ways back.
#include <algorithm>
#include <cmath>

#include "backend/reference/coordinates.h"
#include "backend/reference/task.h"
#include "base/random.h"

namespace tide::reference {
namespace {

// terms(visit) calls visit(index of the output, index of the input, weight).
template <typename Terms>
void run_terms(const ReferenceTask& task, const Terms& terms) {
  const bool forward = task.view.is_forward();
  const Values& from = forward ? task.in(Role::x) : task.in(Role::dy);
  Values& to = forward ? task.out(Role::y) : task.out(Role::dx);
  terms([&](std::size_t output, std::size_t input, double weight) {
    if (forward)
      to[output] += weight * from[input];
    else
      to[input] += weight * from[output];
  });
}

// Of one axis: visit(input, weight) for what an output is made of.
template <typename Visit>
void average_terms(std::int64_t out, std::int64_t extent_in, std::int64_t extent_out, const Visit& visit) {
  const std::int64_t first = out * extent_in / extent_out;
  const std::int64_t end = ((out + 1) * extent_in + extent_out - 1) / extent_out;
  for (std::int64_t in = first; in < end; ++in) visit(in, 1.0 / static_cast<double>(end - first));
}

template <typename Visit>
void resize_terms(const ResizeOptions& options, double given_scale, std::int64_t out, std::int64_t extent_in,
                  std::int64_t extent_out, const Visit& visit) {
  const double scale =
      given_scale > 0 ? 1 / given_scale : static_cast<double>(extent_in) / static_cast<double>(extent_out);
  const auto at = static_cast<double>(out);
  const bool half = options.coordinates == ResizeCoordinates::half_pixel;
  if (options.mode == ResizeMode::nearest) {
    // Like PyTorch's: in floats, whatever the values are.
    const float place = (static_cast<float>(out) + (half ? 0.5F : 0.0F)) * static_cast<float>(scale);
    return visit(std::clamp(static_cast<std::int64_t>(std::floor(place)), std::int64_t{0}, extent_in - 1), 1.0);
  }
  double place = at * scale;
  if (half) place = std::max(0.0, (at + 0.5) * scale - 0.5);
  if (options.coordinates == ResizeCoordinates::align_corners)
    place = extent_out > 1 ? at * static_cast<double>(extent_in - 1) / static_cast<double>(extent_out - 1) : 0;
  const std::int64_t first = std::min(static_cast<std::int64_t>(place), extent_in - 1);
  const std::int64_t second = std::min(first + 1, extent_in - 1);
  const double share = std::min(1.0, place - static_cast<double>(first));
  visit(first, 1 - share);
  visit(second, share);
}

// From which element an output of a padded axis is taken; -1: from none.
std::int64_t padded_from(const PadOptions& options, std::size_t axis, std::int64_t out, std::int64_t in) {
  const std::int64_t place = out - options.before[axis - 1];
  if (place >= 0 && place < in) return place;
  if (options.mode == PadMode::replicate) return std::clamp<std::int64_t>(place, 0, in - 1);
  if (options.mode == PadMode::reflect) return place < 0 ? -place : 2 * (in - 1) - place;
  return -1;
}

}  // namespace

void run_mean(const ReferenceTask& task) {
  const auto& options = task.view.options<MeanOptions>();
  const Coordinates input(task.view.input()), output(task.view.output());
  double count = 1;
  for (const std::int64_t axis : options.axes)
    count *= static_cast<double>(input.shape().extent(static_cast<std::size_t>(axis)));
  run_terms(task, [&](const auto& visit) {
    input.for_each([&](const Place& place) {
      Place to{};
      std::size_t next = 0;
      for (std::size_t axis = 0; axis < input.shape().rank(); ++axis) {
        const bool averaged =
            std::find(options.axes.begin(), options.axes.end(), static_cast<std::int64_t>(axis)) != options.axes.end();
        if (averaged && options.keep) ++next;
        if (!averaged) to[next++] = place[axis];
      }
      visit(output.at(to), input.at(place), 1 / count);
    });
  });
}

void run_adaptive_average_pool(const ReferenceTask& task) {
  const Coordinates input(task.view.input()), output(task.view.output());
  const Shape &in = input.shape(), &out = output.shape();
  run_terms(task, [&](const auto& visit) {
    output.for_each([&](const Place& place) {
      average_terms(place[2], in.height(), out.height(), [&](std::int64_t h, double by_height) {
        average_terms(place[3], in.width(), out.width(), [&](std::int64_t w, double by_width) {
          visit(output.at(place), input.at({place[0], place[1], h, w}), by_height * by_width);
        });
      });
    });
  });
}

void run_resize(const ReferenceTask& task) {
  const auto& options = task.view.options<ResizeOptions>();
  const Coordinates input(task.view.input()), output(task.view.output());
  const Shape &in = input.shape(), &out = output.shape();
  run_terms(task, [&](const auto& visit) {
    output.for_each([&](const Place& place) {
      resize_terms(options, options.scale_height, place[2], in.height(), out.height(),
                   [&](std::int64_t h, double by_height) {
                     resize_terms(options, options.scale_width, place[3], in.width(), out.width(),
                                  [&](std::int64_t w, double by_width) {
                                    visit(output.at(place), input.at({place[0], place[1], h, w}), by_height * by_width);
                                  });
                   });
    });
  });
}

void run_pad(const ReferenceTask& task) {
  const auto& options = task.view.options<PadOptions>();
  const Coordinates input(task.view.input()), output(task.view.output());
  const auto source = [&](Place place) {
    for (std::size_t axis = 1; axis < input.shape().rank(); ++axis)
      place[axis] = padded_from(options, axis, place[axis], input.shape().extent(axis));
    return place;
  };
  const auto is_from_input = [](const Place& place) {
    return std::find(place.begin(), place.end(), -1) == place.end();
  };
  run_terms(task, [&](const auto& visit) {
    output.for_each([&](const Place& place) {
      if (const Place from = source(place); is_from_input(from)) visit(output.at(place), input.at(from), 1);
    });
  });
  if (!task.view.is_forward() || options.value == 0) return;
  Values& y = *task.operands[task.view.written(Role::y)];
  output.for_each([&](const Place& place) {
    if (!is_from_input(source(place))) y[output.at(place)] = options.value;
  });
}

void run_channel_shuffle(const ReferenceTask& task) {
  const Coordinates input(task.view.input());
  const std::int64_t groups = task.view.options<ShuffleOptions>().groups, size = input.shape().channels() / groups;
  run_terms(task, [&](const auto& visit) {
    input.for_each([&](const Place& place) {
      Place to = place;
      to[1] = place[1] % size * groups + place[1] / size;
      visit(input.at(to), input.at(place), 1);
    });
  });
}

void run_transpose(const ReferenceTask& task) {
  const std::vector<std::int64_t>& axes = task.view.options<TransposeOptions>().axes;
  const Coordinates input(task.view.input()), output(task.view.output());
  run_terms(task, [&](const auto& visit) {
    output.for_each([&](const Place& place) {
      Place from{};
      for (std::size_t i = 0; i < axes.size(); ++i) from[static_cast<std::size_t>(axes[i])] = place[i];
      visit(output.at(place), input.at(from), 1);
    });
  });
}

void run_reshape(const ReferenceTask& task) {
  const Coordinates input(task.view.input()), output(task.view.output());
  // Both walk their elements in row-major order.
  std::vector<std::size_t> from;
  input.for_each([&](const Place& place) { from.push_back(input.at(place)); });
  run_terms(task, [&](const auto& visit) {
    std::size_t next = 0;
    output.for_each([&](const Place& place) { visit(output.at(place), from[next++], 1); });
  });
}

// Backward is forward with dy for x, as with dropout.
void run_drop_path(const ReferenceTask& task) {
  const auto& options = task.view.options<DropPathOptions>();
  const Coordinates input(task.view.input());
  const auto first = static_cast<std::uint64_t>(task.state.first_sample + task.view.first_sample());
  run_terms(task, [&](const auto& visit) {
    input.for_each([&](const Place& place) {
      const auto unit = static_cast<std::uint64_t>(options.per_channel ? place[1] : 0);
      const Random4 bits = random_block(task.state.seed, RandomUse::dropout, task.state.step, task.view.random_stream(),
                                        first + static_cast<std::uint64_t>(place[0]), unit / 4);
      const bool keeps = to_unit(bits[unit % 4]) >= static_cast<float>(options.rate);
      visit(input.at(place), input.at(place), keeps ? 1 / (1 - options.rate) : 0.0);
    });
  });
}

}  // namespace tide::reference
