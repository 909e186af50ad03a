// Layers with several inputs or outputs, and sums of gradients.
#include "backend/reference/task.h"

namespace tide::reference {
namespace {

// Between one tensor with all channels and several that have some of them each. An operand
// says by its index which part it is; parts without an operand are skipped.
template <typename Visit>
void for_each_part_element(const Shape& whole, const std::vector<std::int64_t>& channels,
                           const std::vector<std::size_t>& parts, Visit visit) {
  const auto rows = static_cast<std::size_t>(whole.batch() * whole.positions());
  std::size_t first = 0;
  for (std::size_t part = 0; part < channels.size(); ++part) {
    const auto width = static_cast<std::size_t>(channels[part]);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (parts[p] != part) continue;
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t c = 0; c < width; ++c)
          visit(p, row * static_cast<std::size_t>(whole.channels()) + first + c, row * width + c);
    }
    first += width;
  }
}

std::vector<std::size_t> operand_indices(const TaskView& view, const std::vector<std::size_t>& positions) {
  std::vector<std::size_t> indices;
  for (const std::size_t position : positions)
    indices.push_back(static_cast<std::size_t>(view.operand(position).index));
  return indices;
}

std::vector<std::int64_t> part_channels(const TaskView& view) {
  std::vector<std::int64_t> channels;
  if (view.layer_kind() == LayerKind::split) return view.options<SplitOptions>().channels;
  for (std::size_t i = 0; i < view.layer().inputs.size(); ++i) channels.push_back(view.input(i).channels());
  return channels;
}

// From the parts into the whole: concat forward, split backward.
void gather(const ReferenceTask& task, Role part, Role whole, const Shape& shape) {
  Values& to = task.out(whole);
  for_each_part_element(shape, part_channels(task.view), operand_indices(task.view, task.view.all_read(part)),
                        [&](auto p, auto large, auto small) { to[large] = task.in(part, p)[small]; });
}

// From the whole into the parts: split forward, concat backward.
void scatter(const ReferenceTask& task, Role whole, Role part, const Shape& shape) {
  const Values& from = task.in(whole);
  const std::vector<std::size_t> positions = task.view.all_written(part);
  for (std::size_t p = 0; p < positions.size(); ++p) static_cast<void>(task.out(part, p));
  for_each_part_element(shape, part_channels(task.view), operand_indices(task.view, positions),
                        [&](auto p, auto large, auto small) { (*task.operands[positions[p]])[small] = from[large]; });
}

void sum(const ReferenceTask& task, Role from, Role to) {
  Values& y = task.out(to);
  for (std::size_t p = 0; p < task.view.all_read(from).size(); ++p)
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += task.in(from, p)[i];
}

void copy(const ReferenceTask& task, Role from, Role to) {
  for (std::size_t p = 0; p < task.view.all_written(to).size(); ++p) task.out(to, p) = task.in(from);
}

void multiply(const ReferenceTask& task) {
  const Values &a = task.in(Role::x, 0), &b = task.in(Role::x, 1);
  if (task.view.is_forward()) {
    Values& y = task.out(Role::y);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] * b[i];
    return;
  }
  const Values& dy = task.in(Role::dy);
  const std::vector<std::size_t> positions = task.view.all_written(Role::dx);
  for (std::size_t p = 0; p < positions.size(); ++p) {
    const Values& other = task.view.operand(positions[p]).index == 0 ? b : a;
    Values& dx = task.out(Role::dx, p);
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = dy[i] * other[i];
  }
}

}  // namespace

void run_add(const ReferenceTask& task) {
  return task.view.is_forward() ? sum(task, Role::x, Role::y) : copy(task, Role::dy, Role::dx);
}

void run_fork(const ReferenceTask& task) {
  return task.view.is_forward() ? copy(task, Role::x, Role::y) : sum(task, Role::dy, Role::dx);
}

void run_multiply(const ReferenceTask& task) { multiply(task); }

void run_concat(const ReferenceTask& task) {
  return task.view.is_forward() ? gather(task, Role::x, Role::y, task.view.output())
                                : scatter(task, Role::dy, Role::dx, task.view.output());
}

void run_split(const ReferenceTask& task) {
  return task.view.is_forward() ? scatter(task, Role::x, Role::y, task.view.input())
                                : gather(task, Role::dy, Role::dx, task.view.input());
}

void run_sum_gradients(const ReferenceTask& task) { sum(task, Role::x, Role::y); }

}  // namespace tide::reference
