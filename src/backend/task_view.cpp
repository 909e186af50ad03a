#include "backend/task_view.h"

namespace tide {

TaskView::TaskView(const Step& step, TaskId id) : step_(&step), id_(id), operands_(step.operands_of(id)) {
  if (step.network == nullptr)
    throw Error("the step of {} has no network, so it can be planned but not run", step.model);
}

std::optional<std::size_t> TaskView::find(Role role, bool written, std::size_t nth) const {
  for (std::size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i].role == role && (operands_[i].access != Access::read) == written && nth-- == 0) return i;
  return std::nullopt;
}

std::optional<std::size_t> TaskView::find_read(Role role, std::size_t nth) const { return find(role, false, nth); }

std::optional<std::size_t> TaskView::find_written(Role role, std::size_t nth) const { return find(role, true, nth); }

std::size_t TaskView::read(Role role, std::size_t nth) const {
  if (const auto position = find(role, false, nth)) return *position;
  throw Error("task '{}' does not read operand '{}' {}", task_name(*step_, id_), role_name(role), nth);
}

std::size_t TaskView::written(Role role, std::size_t nth) const {
  if (const auto position = find(role, true, nth)) return *position;
  throw Error("task '{}' does not write operand '{}' {}", task_name(*step_, id_), role_name(role), nth);
}

std::vector<std::size_t> TaskView::all_read(Role role) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i].role == role && operands_[i].access == Access::read) found.push_back(i);
  return found;
}

std::vector<std::size_t> TaskView::all_written(Role role) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i].role == role && operands_[i].access != Access::read) found.push_back(i);
  return found;
}

std::uint32_t TaskView::random_stream() const {
  const std::int64_t stream = *tide::random_stream(layer().options);
  return static_cast<std::uint32_t>(stream >= 0 ? stream : static_cast<std::int64_t>(layer_id().index()));
}

TaskView::TrainedAt TaskView::trained_at(std::size_t nth) const {
  const ParameterId id = tensor(read(Role::weight, nth)).parameter;
  if (!id.valid()) return {};  // a share of several, all of which are trained alike (shards.cpp)
  const Parameter& parameter = step_->network->parameters[id.index()];
  return {parameter.rate, parameter.decay};
}

Shape TaskView::input(std::size_t index) const {
  return step_->network->shape(layer().inputs[index]).with_batch(samples());
}

Shape TaskView::output(std::size_t index) const { return layer().outputs[index].with_batch(samples()); }

std::vector<ChannelPart> channel_parts(const TaskView& view, const std::vector<std::size_t>& positions) {
  std::vector<std::int64_t> channels;
  if (view.layer_kind() == LayerKind::split)
    channels = view.options<SplitOptions>().channels;
  else
    for (std::size_t i = 0; i < view.layer().inputs.size(); ++i) channels.push_back(view.input(i).channels());
  std::vector<ChannelPart> parts;
  for (const std::size_t position : positions) {
    const auto index = static_cast<std::size_t>(view.operand(position).index);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index; ++i) offset += channels[i];
    parts.push_back({position, offset, channels[index]});
  }
  return parts;
}

}  // namespace tide
