// Pools: the largest or the average of a window, or the average of everything.
#include "network/kinds/window.h"

namespace tide {
namespace {

// Every pooling window must hold at least one element of the input.
void check(const WindowSpan& span, std::int64_t in) {
  check_span(span);
  const std::int64_t effective = span.effective();
  require(span.before < effective && span.after < effective,
          "padding of the {} is {} and {}; it must be smaller than the window of {}", span.axis, span.before,
          span.after, effective);
  require(span.kernel == 1 || span.dilation <= in, "dilation {} is {}; it must not exceed the input's {}", span.axis,
          span.dilation, in);
}

std::vector<Shape> pooled(const Layer& layer, const std::vector<Shape>& inputs, std::int64_t most_positions) {
  const auto& options = layer.as<PoolOptions>();
  const Shape& x = inputs[0];
  check_image(x);
  const WindowSpan rows = vertical(options.window), columns = horizontal(options.window);
  check(rows, x.height());
  check(columns, x.width());
  require(most_positions == 0 || checked_multiply(rows.kernel, columns.kernel) <= most_positions,
          "a max pool window of {}x{} has more than {} positions; use several pools", rows.kernel, columns.kernel,
          most_positions);
  return {Shape{1, x.channels(), window_count(rows, x.height(), options.round_up),
                window_count(columns, x.width(), options.round_up)}};
}

// The position of the maximum within its window is kept in one byte.
std::vector<Shape> max_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  return pooled(layer, inputs, 256);
}
std::vector<Shape> average_shapes(const Layer& layer, const std::vector<Shape>& inputs) {
  return pooled(layer, inputs, 0);
}
std::vector<Shape> global_shapes(const Layer& /*layer*/, const std::vector<Shape>& inputs) {
  Shape result = inputs[0];
  for (std::size_t axis = 2; axis < result.rank(); ++axis) result = result.with_extent(axis, 1);
  return {result};
}

SavedState indices(Role /*role*/, const Layer& layer, std::int64_t samples) {
  const Window& window = layer.as<PoolOptions>().window;
  const bool small = checked_multiply(window.kernel_height, window.kernel_width) <= 255;
  return {layer.outputs[0].with_batch(samples), small ? DataType::u8 : DataType::i32};
}

KindDescription describe_pool() {
  KindDescription kind;
  kind.forward.operands = {reads(Role::x), writes(Role::y)};
  kind.backward.operands = {reads(Role::x, When::superneurons), reads(Role::y, When::superneurons), reads(Role::dy),
                            writes(Role::dx)};
  kind.paper_type = PaperType::pool;
  return kind;
}

}  // namespace

KindDescription describe_max_pool() {
  KindDescription kind = describe_pool();
  kind.defaults = PoolOptions{};
  kind.shapes = max_shapes;
  kind.forward.operands = {reads(Role::x), writes(Role::y), writes(Role::indices, When::for_backward)};
  kind.backward.operands = {reads(Role::x, When::superneurons), reads(Role::y, When::superneurons),
                            reads(Role::indices, When::minimal), reads(Role::dy), writes(Role::dx)};
  kind.saved = indices;
  kind.flops_per_element = 9;
  return kind;
}

KindDescription describe_average_pool() {
  KindDescription kind = describe_pool();
  kind.defaults = PoolOptions{};
  kind.shapes = average_shapes;
  kind.flops_per_element = 9;
  return kind;
}

KindDescription describe_global_average_pool() {
  KindDescription kind = describe_pool();
  kind.shapes = global_shapes;
  return kind;
}

}  // namespace tide
