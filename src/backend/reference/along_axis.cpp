// Softmax and L2 normalization along one axis.
#include <algorithm>
#include <cmath>

#include "backend/reference/coordinates.h"
#include "backend/reference/task.h"

namespace tide::reference {
namespace {

// visit(indices of the elements of one line along the axis) for every line.
template <typename Visit>
void for_each_line(const Shape& shape, std::int64_t axis, const Visit& visit) {
  const auto along = static_cast<std::size_t>(axis);
  const Coordinates all(shape), starts(shape.with_extent(along, 1));
  std::vector<std::size_t> line(static_cast<std::size_t>(shape.extent(along)));
  starts.for_each([&](Place place) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      place[along] = static_cast<std::int64_t>(i);
      line[i] = all.at(place);
    }
    visit(line);
  });
}

}  // namespace

void run_softmax(const ReferenceTask& task) {
  const std::int64_t axis = task.view.options<SoftmaxAxisOptions>().axis;
  if (task.view.is_forward()) {
    const Values& x = task.in(Role::x);
    Values& y = task.out(Role::y);
    for_each_line(task.view.input(), axis, [&](const std::vector<std::size_t>& line) {
      double largest = x[line[0]], sum = 0;
      for (const std::size_t i : line) largest = std::max(largest, x[i]);
      for (const std::size_t i : line) sum += std::exp(x[i] - largest);
      for (const std::size_t i : line) y[i] = std::exp(x[i] - largest) / sum;
    });
    return;
  }
  const Values &y = task.in(Role::y), &dy = task.in(Role::dy);
  Values& dx = task.out(Role::dx);
  for_each_line(task.view.input(), axis, [&](const std::vector<std::size_t>& line) {
    double product = 0;
    for (const std::size_t i : line) product += y[i] * dy[i];
    for (const std::size_t i : line) dx[i] = y[i] * (dy[i] - product);
  });
}

void run_l2_normalize(const ReferenceTask& task) {
  const auto& options = task.view.options<L2NormalizeOptions>();
  const Values& x = task.in(Role::x);
  const bool forward = task.view.is_forward();
  Values& to = forward ? task.out(Role::y) : task.out(Role::dx);
  for_each_line(task.view.input(), options.axis, [&](const std::vector<std::size_t>& line) {
    double squares = 0, product = 0;
    for (const std::size_t i : line) squares += x[i] * x[i];
    const double norm = std::sqrt(squares), divisor = std::max(norm, options.epsilon);
    if (forward) {
      for (const std::size_t i : line) to[i] = x[i] / divisor;
      return;
    }
    const Values& dy = task.in(Role::dy);
    for (const std::size_t i : line) product += x[i] * dy[i];
    // Below epsilon the divisor does not depend on x.
    if (norm <= options.epsilon) product = 0;
    for (const std::size_t i : line) to[i] = dy[i] / divisor - x[i] * product / (divisor * divisor * divisor);
  });
}

}  // namespace tide::reference
