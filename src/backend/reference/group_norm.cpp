#include <cmath>

#include "backend/reference/task.h"

namespace tide::reference {
namespace {

// Where element i of an NHWC activation belongs.
struct Groups {
  explicit Groups(const TaskView& view)
      : channels(static_cast<std::size_t>(view.input().channels())),
        per_sample(static_cast<std::size_t>(view.input().per_sample())),
        groups(static_cast<std::size_t>(view.options<GroupNormOptions>().groups)),
        count(static_cast<std::size_t>(view.input().batch()) * groups) {}

  [[nodiscard]] std::size_t channel(std::size_t i) const { return i % channels; }
  [[nodiscard]] std::size_t group(std::size_t i) const {
    return i / per_sample * groups + channel(i) / (channels / groups);
  }
  [[nodiscard]] double size() const { return static_cast<double>(per_sample / groups); }

  std::size_t channels, per_sample, groups;
  std::size_t count;  // of all samples
};

void forward(const ReferenceTask& task) {
  const Groups at(task.view);
  const Values &x = task.in(Role::x), &scale = task.in(Role::weight), &shift = task.in(Role::bias);
  Values mean(at.count, 0.0), inverse_deviation(at.count, 0.0);
  if (task.view.find_read(Role::mean)) {
    mean = task.in(Role::mean);
    inverse_deviation = task.in(Role::inverse_deviation);
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) mean[at.group(i)] += x[i] / at.size();
    for (std::size_t i = 0; i < x.size(); ++i)
      inverse_deviation[at.group(i)] += (x[i] - mean[at.group(i)]) * (x[i] - mean[at.group(i)]) / at.size();
    const double epsilon = task.view.options<GroupNormOptions>().epsilon;
    for (double& variance : inverse_deviation) variance = 1 / std::sqrt(variance + epsilon);
  }
  Values& y = task.out(Role::y);
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = (x[i] - mean[at.group(i)]) * inverse_deviation[at.group(i)] * scale[at.channel(i)] + shift[at.channel(i)];
  if (!task.writes(Role::mean)) return;
  task.out(Role::mean) = mean;
  task.out(Role::inverse_deviation) = inverse_deviation;
}

}  // namespace

void run_group_norm(const ReferenceTask& task) {
  if (task.view.is_forward()) return forward(task);
  const Groups at(task.view);
  const Values &x = task.in(Role::x), &dy = task.in(Role::dy), &scale = task.in(Role::weight);
  const Values &mean = task.in(Role::mean), &inverse_deviation = task.in(Role::inverse_deviation);
  const auto normalized = [&](std::size_t i) { return (x[i] - mean[at.group(i)]) * inverse_deviation[at.group(i)]; };
  const auto arriving = [&](std::size_t i) { return dy[i] * scale[at.channel(i)]; };
  if (task.writes(Role::dx)) {
    Values sum(at.count, 0.0), product_sum(at.count, 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum[at.group(i)] += arriving(i);
      product_sum[at.group(i)] += arriving(i) * normalized(i);
    }
    Values& dx = task.out(Role::dx);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t g = at.group(i);
      dx[i] = inverse_deviation[g] * (arriving(i) - sum[g] / at.size() - normalized(i) * product_sum[g] / at.size());
    }
  }
  if (!task.writes(Role::d_weight)) return;
  Values &d_scale = task.out(Role::d_weight), &d_shift = task.out(Role::d_bias);
  for (std::size_t i = 0; i < x.size(); ++i) {
    d_scale[at.channel(i)] += dy[i] * normalized(i);
    d_shift[at.channel(i)] += dy[i];
  }
}

}  // namespace tide::reference
