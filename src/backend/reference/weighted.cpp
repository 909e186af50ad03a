// Layers with weights: convolution, transposed convolution, fully connected.
#include "backend/reference/task.h"

namespace tide::reference {
namespace {

// Every product of a convolution: calls visit(index in the large side, index in the small
// side, index of the weight). The large side is x of a convolution and y of a transposed
// one, which is the same relation read the other way round; its weights are
// small channels x large channels of one group x kernel.
template <typename Visit>
void for_each_product(const ConvolutionOptions& options, const Grid& large, const Grid& small, Visit visit) {
  const Window& window = options.window;
  const std::int64_t small_per_group = small.shape.channels() / options.groups;
  const std::int64_t large_per_group = large.shape.channels() / options.groups;
  for (std::int64_t n = 0; n < small.shape.batch(); ++n)
    for (std::int64_t s = 0; s < small.shape.channels(); ++s)
      for (std::int64_t h = 0; h < small.shape.height(); ++h)
        for (std::int64_t w = 0; w < small.shape.width(); ++w)
          for (std::int64_t l = 0; l < large_per_group; ++l)
            for (std::int64_t kh = 0; kh < window.kernel_height; ++kh)
              for (std::int64_t kw = 0; kw < window.kernel_width; ++kw) {
                const std::int64_t y = h * window.stride_height - window.pad_top + kh * window.dilation_height;
                const std::int64_t x = w * window.stride_width - window.pad_left + kw * window.dilation_width;
                if (y < 0 || y >= large.shape.height() || x < 0 || x >= large.shape.width()) continue;
                const std::int64_t channel = s / small_per_group * large_per_group + l;
                const std::int64_t weight =
                    ((s * large_per_group + l) * window.kernel_height + kh) * window.kernel_width + kw;
                visit(large.at(n, channel, y, x), small.at(n, s, h, w), static_cast<std::size_t>(weight));
              }
}

void add_bias(const ReferenceTask& task, Values& y, std::int64_t channels) {
  if (!task.view.find_read(Role::bias)) return;
  const Values& bias = task.in(Role::bias);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % static_cast<std::size_t>(channels)];
}

void sum_bias(const ReferenceTask& task, const Values& dy, std::int64_t channels) {
  if (!task.writes(Role::d_bias)) return;
  Values& d_bias = task.out(Role::d_bias);
  for (std::size_t i = 0; i < dy.size(); ++i) d_bias[i % static_cast<std::size_t>(channels)] += dy[i];
}

// All passes of a layer whose products for_each visits as (x index, y index, weight index).
template <typename ForEach>
void run_products(const ReferenceTask& task, std::int64_t channels, const ForEach& for_each) {
  if (task.view.is_forward()) {
    const Values &x = task.in(Role::x), &weight = task.in(Role::weight);
    Values& y = task.out(Role::y);
    for_each([&](auto i, auto o, auto k) { y[o] += x[i] * weight[k]; });
    add_bias(task, y, channels);
  } else if (task.view.kind() == TaskKind::backward_data) {
    const Values &dy = task.in(Role::dy), &weight = task.in(Role::weight);
    Values& dx = task.out(Role::dx);
    for_each([&](auto i, auto o, auto k) { dx[i] += dy[o] * weight[k]; });
  } else {
    const Values &x = task.in(Role::x), &dy = task.in(Role::dy);
    Values& d_weight = task.out(Role::d_weight);
    for_each([&](auto i, auto o, auto k) { d_weight[k] += x[i] * dy[o]; });
    sum_bias(task, dy, channels);
  }
}

}  // namespace

void run_convolution(const ReferenceTask& task) {
  const auto& options = task.view.options<ConvolutionOptions>();
  const Grid input{task.view.input()}, output{task.view.output()};
  run_products(task, output.shape.channels(), [&](auto visit) { for_each_product(options, input, output, visit); });
}

void run_transposed_convolution(const ReferenceTask& task) {
  const auto& options = task.view.options<ConvolutionOptions>();
  const Grid input{task.view.input()}, output{task.view.output()};
  run_products(task, output.shape.channels(), [&](auto visit) {
    for_each_product(options, output, input, [&](auto large, auto small, auto weight) { visit(small, large, weight); });
  });
}

void run_fully_connected(const ReferenceTask& task) {
  const Shape input = task.view.input();
  const std::int64_t outputs = task.view.output().channels(), channels = input.channels();
  const std::int64_t positions = input.positions();
  run_products(task, outputs, [&](auto visit) {
    for (std::int64_t n = 0; n < input.batch(); ++n)
      for (std::int64_t o = 0; o < outputs; ++o)
        for (std::int64_t c = 0; c < channels; ++c)
          for (std::int64_t p = 0; p < positions; ++p)
            visit(static_cast<std::size_t>((n * positions + p) * channels + c),
                  static_cast<std::size_t>(n * outputs + o),
                  static_cast<std::size_t>((o * channels + c) * positions + p));
  });
}

}  // namespace tide::reference
