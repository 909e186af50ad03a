#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

namespace tide {

Progress::Progress(std::FILE* stream, bool may_redraw)
    : stream_(stream), terminal_(may_redraw && stream != nullptr && isatty(fileno(stream)) == 1) {}

Progress::~Progress() { clear_bar(); }

void Progress::clear_bar() {
  if (!bar_shown_) return;
  fmt::print(stream_, "\r\033[K");
  std::fflush(stream_);
  bar_shown_ = false;
}

void Progress::on_step(const StepInfo& info) {
  if (stream_ == nullptr) return;
  const auto now = std::chrono::steady_clock::now();
  const bool last = info.step == info.total_steps;
  if (terminal_) {
    if (!last && now - last_drawn_ < std::chrono::milliseconds(80)) return;
    constexpr std::int64_t kWidth = 24;
    const std::int64_t full = info.step * kWidth / info.total_steps;
    std::string bar;
    for (std::int64_t i = 0; i < kWidth; ++i) bar += i < full ? "█" : "░";
    fmt::print(stream_, "\r\033[K{} step {}/{}  loss {:.4f}  lr {:.3g}  {:.0f} img/s", bar, info.step, info.total_steps,
               info.loss, info.learning_rate, info.images_per_second);
    bar_shown_ = true;
  } else {
    // A log wants a line now and then, however long or short the run is.
    const bool first = info.step == 1;
    if (!first && !last && now - last_drawn_ < std::chrono::seconds(10)) return;
    fmt::print(stream_, "step {}/{}  loss {:.4f}  lr {:.3g}  {:.0f} img/s\n", info.step, info.total_steps, info.loss,
               info.learning_rate, info.images_per_second);
  }
  last_drawn_ = now;
  std::fflush(stream_);
}

void Progress::on_epoch(const EpochInfo& info) {
  if (stream_ == nullptr) return;
  clear_bar();
  const auto accuracy_text = [](const std::optional<double>& accuracy) {
    return accuracy ? fmt::format("  accuracy {:6.2f}%", 100 * *accuracy) : "";
  };
  fmt::print(stream_, "epoch {:>3}  loss {:.4f}{}", info.epoch, info.loss, accuracy_text(info.accuracy));
  if (info.validation)
    fmt::print(stream_, "  held out: loss {:.4f}{}", info.validation->loss, accuracy_text(info.validation->accuracy));
  fmt::print(stream_, "  ({:.1f} s)\n", info.seconds);
  std::fflush(stream_);
}

}  // namespace tide
