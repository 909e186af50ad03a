#include "cost/profile.h"

#include <algorithm>
#include <fstream>
#include <thread>

namespace tide {
namespace {

// A role says the type too.
std::string shape_text(const Shape& s) {
  // A vector was once one sample with channels, and profiles of that time are still good.
  if (s.rank() == 1) return fmt::format("1x{}x1x1", s.extent(0));
  if (s.rank() == 2) return fmt::format("{}x{}x1x1", s.batch(), s.channels());
  return fmt::format("{}", fmt::join(s.extents(), "x"));
}

std::string_view access_text(const Step& step, const Operand& operand) {
  if (operand.access == Access::read) return "";
  return adds(step, operand) ? "+" : ">";
}

// What the time depends on besides the operands' shapes.
std::string options_text(const Step& step, const Task& task) {
  if (step.network == nullptr) return "";
  const Layer& layer = step.network->layer(task.layer);
  const auto window = [](const Window& w) {
    return fmt::format(" window={}x{}/{}x{}", w.kernel_height, w.kernel_width, w.stride_height, w.stride_width);
  };
  if (const auto* const pool = std::get_if<PoolOptions>(&layer.options)) return window(pool->window);
  if (const auto* const lrn = std::get_if<LrnOptions>(&layer.options)) return fmt::format(" size={}", lrn->size);
  const auto* const convolution = std::get_if<ConvolutionOptions>(&layer.options);
  if (convolution == nullptr || (convolution->window.dilation_height == 1 && convolution->window.dilation_width == 1))
    return "";
  return fmt::format(" dilation={}x{}", convolution->window.dilation_height, convolution->window.dilation_width);
}

// The forward task of which `replay` is the variant.
TaskId forward_of(const Step& step, TaskId replay) {
  for (std::size_t t = 0; t < step.replay_of.size(); ++t)
    if (step.replay_of[t] == replay) return TaskId(t);
  return {};
}

}  // namespace

std::string signature_of(const Step& step, TaskId id, std::size_t algorithm) {
  const Task& task = step.task(id);
  const TaskKind kind = task.kind == TaskKind::replay ? TaskKind::forward : task.kind;
  std::string text = is_of_layer(kind) ? fmt::format("{} {}", kind_name(step.layer_kind(task)), kind_name(kind))
                                       : std::string(kind_name(kind));
  for (const Operand& operand : step.operands_of(task))
    fmt::format_to(std::back_inserter(text), " {}{}={}", access_text(step, operand), role_name(operand.role),
                   shape_text(step.shape_of(operand)));
  if (is_of_layer(kind)) text += options_text(step, task);
  return text + ", " + step.algorithms_of(id)[algorithm].name;
}

std::string machine_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find(": ");
    if (!line.starts_with("model name") || at == std::string::npos) continue;
    model = line.substr(at + 2);
    break;
  }
  return fmt::format("{}, {} cores", model, std::thread::hardware_concurrency());
}

ProfileModel::ProfileModel(std::vector<Profile> profiles, double link_bytes_per_second)
    : profiles_(std::move(profiles)), link_bytes_per_second_(link_bytes_per_second), otherwise_(generic_cpu()) {
  if (profiles_.empty()) throw Error("a profile without times; take one with tide profile");
  std::stable_partition(profiles_.begin(), profiles_.end(),
                        [here = machine_name()](const Profile& profile) { return profile.machine == here; });
}

std::string ProfileModel::name() const { return "measured: " + profiles_.front().machine; }

const Profile* ProfileModel::find(const std::string& backend) const {
  for (const Profile& profile : profiles_)
    if (profile.backend == backend) return &profile;
  return nullptr;
}

double ProfileModel::task_seconds(const Step& step, TaskId task, std::size_t algorithm) const {
  // Nobody can measure alone what takes several.
  if (is_collective(step.task(task).kind)) return otherwise_.task_seconds(step, task, algorithm);
  if (const Profile* const profile = find(step.backend)) {
    const auto measured = [&](TaskId id) { return profile->task_seconds.find(signature_of(step, id, algorithm)); };
    auto found = measured(task);
    if (found == profile->task_seconds.end() && step.task(task).kind == TaskKind::replay)
      if (const TaskId forward = forward_of(step, task);
          forward.valid() && algorithm < step.algorithms_of(forward).size())
        found = measured(forward);
    if (found != profile->task_seconds.end()) return found->second;
  }
  missing_.fetch_add(1, std::memory_order_relaxed);
  return otherwise_.task_seconds(step, task, algorithm);
}

double ProfileModel::copy_seconds(Bytes bytes, Tier from, Tier to) const {
  const std::optional<Route> route = find_route(from, to);
  // Devices are taken to be as far from each other as from the host, until somebody knows better (MediumSpeed).
  const bool is_known = route && (row_of(*route).medium == Medium::link || row_of(*route).medium == Medium::peer);
  if (!is_known) return otherwise_.copy_seconds(bytes, from, to);
  const LinkSpeed& link = to == Tier::device ? profiles_.front().in : profiles_.front().out;
  double speed = link.bytes_per_second;
  if (link_bytes_per_second_ > 0) speed = std::min(speed, link_bytes_per_second_);
  return static_cast<double>(bytes.count()) / speed + link.latency_seconds;
}

}  // namespace tide
