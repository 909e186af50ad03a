#include "cluster/watch.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>

#include "base/error.h"
#include "cluster/stop_signal.h"
#include "cluster/watch_link.h"

namespace tide {
namespace {

constexpr float kNoLimit = std::numeric_limits<float>::infinity();
constexpr double kPatience = 5;          // times the predicted time
constexpr double kStopSeconds = 0.5;     // how long SIGTERM may turn out to be about a rank that failed
constexpr double kAskedSeconds = 2;      // by how much ranks may differ that were all asked to stop
constexpr double kFailedSeconds = 3;     // what a rank that fails has to say why, and its judge to say who
constexpr double kSpeakerFirst = 0.5;    // what others leave the one that prints, before they end and are noticed
constexpr double kOwnGap = 1;            // this process was stopped, not its peers
constexpr double kSilentAtSignal = 1.5;  // whoever has been silent for so long when SIGTERM comes is its reason
constexpr double kMuted = 2;             // how long one that was stopped waits for what the others have decided

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

void print(const std::string& line) {
  const std::string text = line + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

WatchMessage verdict_about(const WatchFailure& failure) {
  WatchMessage message{.word = WatchWord::verdict, .rank = failure.rank, .exit_code = failure.exit_code};
  message.set_text(failure.line);
  return message;
}

}  // namespace

// Rank 0 has a peer for each other rank, and they have rank 0.
class Watch::Thread {
 public:
  Thread(Watch& watch, Communicator& communicator, WatchOptions options);
  ~Thread();

  void finish();
  void fail(const std::string& reason, int exit_code);

 private:
  struct Peer {
    int rank = 0;
    std::unique_ptr<WatchLink> link;
    Clock::time_point heard;
    WatchMessage latest;
    std::optional<Clock::time_point> asked, failed;
    WatchMessage reason;  // what it has said about that
  };
  enum class End { none, finished, failed };  // of this rank, as it says itself

  [[nodiscard]] double silent_seconds(const Peer& peer) const { return seconds_between(peer.heard, now_); }
  [[nodiscard]] bool is_judge() const { return rank_ == 0; }

  void run();
  bool turn();  // whether there is another one
  void wait_for_news();
  void note_time();
  void listen(Peer& peer);
  void take_stop_signal();
  void talk();
  void tell(WatchWord word, const std::string& text = "");
  bool tell_own_failure();  // whether it waits for the judge
  void say(const WatchFailure& failure);
  [[nodiscard]] WatchMessage own_message();
  [[nodiscard]] std::optional<WatchFailure> look();
  [[nodiscard]] std::optional<WatchFailure> look_at(const Peer& peer);
  [[nodiscard]] std::optional<WatchFailure> look_at_failed(const Peer& peer);
  [[nodiscard]] std::optional<WatchFailure> look_for_hang();
  [[nodiscard]] WatchFailure failure_of(const WatchMessage& of, const std::string& what);
  void end_all(WatchFailure failure);
  [[nodiscard]] bool speaks_for_host() const;
  void wake();

  Watch& watch_;
  WatchOptions options_;
  const int rank_;
  std::vector<std::string> hosts_;
  std::vector<Peer> peers_;
  std::optional<StopSignal> signal_;
  std::array<int, 2> wakes_{-1, -1};
  std::atomic<End> end_ = End::none;
  std::string reason_;  // why this rank has failed, with its code; written before end_
  int exit_code_ = 1;
  bool has_ended_ = false;  // on_failure was called by the thread
  bool has_said_ = false;   // its line

  Clock::time_point now_ = Clock::now(), talked_{}, changed_ = now_;
  std::optional<Clock::time_point> asked_;   // SIGTERM came
  std::optional<Clock::time_point> failed_;  // this rank has told so
  std::optional<Clock::time_point> muted_;   // this rank was stopped itself
  std::optional<int> silent_when_asked_;
  bool is_handed_on_ = false, pretends_ = false;
  std::optional<WatchFailure> verdict_;
  std::uint64_t changes_ = 0;
  double interval_ = 0.1;
  std::thread thread_;
};

Watch::Thread::Thread(Watch& watch, Communicator& communicator, WatchOptions options)
    : watch_(watch), options_(std::move(options)), rank_(communicator.rank()) {
  if (!options_.on_line) options_.on_line = print;
  if (!options_.on_failure) options_.on_failure = [](const WatchFailure& failure) { _exit(failure.exit_code); };
  if (!options_.on_stop) options_.on_stop = end_by_stop_signal;
  for (double* const seconds : {&options_.silence, &options_.hang})
    if (*seconds <= 0) *seconds = std::numeric_limits<double>::infinity();
  interval_ = std::min(interval_, options_.silence / 8);
  for (int rank = 0; rank < communicator.size(); ++rank) hosts_.push_back(communicator.host(rank));
  std::vector<std::unique_ptr<WatchLink>> links = connect_watch(communicator);
  for (std::size_t rank = 0; rank < links.size(); ++rank) {
    if (!links[rank]) continue;
    Peer& peer = peers_.emplace_back();
    peer.rank = peer.latest.rank = static_cast<int>(rank);
    peer.latest.set_text(watch.names_.front());
    peer.link = std::move(links[rank]);
    peer.heard = Clock::now();
  }
  if (options_.takes_stop_signal) signal_.emplace();
  if (pipe2(wakes_.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw Error("no pipe can be made: {}", std::strerror(errno));
  thread_ = std::thread([this] { run(); });
}

Watch::Thread::~Thread() {
  if (thread_.joinable()) {
    end_ = End::failed;
    wake();
    thread_.join();
  }
  for (const int end : wakes_) close(end);
}

void Watch::Thread::finish() {
  if (!thread_.joinable()) return;
  end_ = End::finished;
  wake();
  thread_.join();
}

void Watch::Thread::fail(const std::string& reason, int exit_code) {
  if (!thread_.joinable()) return;
  reason_ = reason;
  exit_code_ = exit_code;
  end_ = End::failed;
  wake();
  thread_.join();
  if (!has_ended_) options_.on_failure({rank_, fmt::format("tide: {}", reason), is_judge(), exit_code});
}

void Watch::Thread::wake() {
  const char byte = 1;
  [[maybe_unused]] const auto written = write(wakes_[1], &byte, 1);
}

void Watch::Thread::run() {
  now_ = changed_ = Clock::now();
  for (Peer& peer : peers_) peer.heard = now_;
  while (turn()) {
  }
  // Nobody listens to it any more.
  const bool is_asked = signal_ && signal_->take();
  signal_.reset();
  if (is_asked) end_by_stop_signal();
}

bool Watch::Thread::turn() {
  wait_for_news();
  const Pretence pretence = watch_.pretence_;
  if (pretence != Pretence::none && !pretends_) talk();  // so that the others know what it was doing
  pretends_ = pretence != Pretence::none;
  if (pretence == Pretence::dead) peers_.clear();
  if (pretends_) return pretence == Pretence::stopped && end_ == End::none;

  note_time();
  for (Peer& peer : peers_)
    if (peer.link) listen(peer);
  take_stop_signal();
  if (end_ == End::failed) return tell_own_failure();
  if (std::optional<WatchFailure> failure = look()) {
    has_ended_ = true;
    end_all(std::move(*failure));
    return false;
  }
  if (asked_ && !is_handed_on_ && (peers_.empty() || seconds_between(*asked_, now_) > kStopSeconds)) {
    is_handed_on_ = true;
    options_.on_stop();
  }
  if (end_ == End::finished) {
    if (!is_judge() ||
        std::none_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.link != nullptr; })) {
      tell(WatchWord::goodbye);
      return false;
    }
  }
  if (seconds_between(talked_, now_) >= interval_) talk();
  return true;
}

void Watch::Thread::wait_for_news() {
  std::vector<pollfd> entries{{wakes_[0], POLLIN, 0}};
  if (signal_ && signal_->descriptor() >= 0) entries.push_back({signal_->descriptor(), POLLIN, 0});
  if (watch_.pretence_ == Pretence::none)
    for (const Peer& peer : peers_)
      if (peer.link && !peer.link->is_closed()) entries.push_back({peer.link->descriptor(), POLLIN, 0});
  const double left = std::clamp(interval_ - seconds_between(talked_, Clock::now()), 0.0, interval_);
  poll(entries.data(), entries.size(), static_cast<int>(std::ceil(left * 1000)) + 1);
  std::array<char, 16> bytes{};
  while (read(wakes_[0], bytes.data(), bytes.size()) > 0) {
  }
}

// Where this process itself did not run for a while, its peers are not to blame, nor is its own work; the others may
// have given it up, and it is they who speak.
void Watch::Thread::note_time() {
  const Clock::time_point before = now_;
  now_ = Clock::now();
  const double gap = seconds_between(before, now_);
  if (gap > kOwnGap + interval_) {
    changed_ = now_;
    for (Peer& peer : peers_) peer.heard = now_;
    if (gap > options_.silence - kOwnGap) muted_ = now_;
  }
  if (muted_ && seconds_between(*muted_, now_) > kMuted) muted_.reset();
}

void Watch::Thread::listen(Peer& peer) {
  for (const WatchMessage& message : peer.link->receive()) {
    peer.heard = now_;
    switch (message.word) {
      case WatchWord::hello: break;
      case WatchWord::alive: peer.latest = message; break;
      case WatchWord::goodbye:
        peer.latest.state.has_finished = true;
        peer.link.reset();
        return;
      case WatchWord::failed:
        peer.failed = now_;
        peer.reason = message;
        break;
      case WatchWord::asked: peer.asked = now_; break;
      case WatchWord::verdict:
        verdict_ = WatchFailure{message.rank, message.text.data(), false, message.exit_code};
        break;
    }
  }
}

void Watch::Thread::take_stop_signal() {
  if (!signal_ || !signal_->take()) return;
  if (asked_) {  // by somebody who does not want to wait
    if (is_handed_on_) end_by_stop_signal();
    return;
  }
  asked_ = now_;
  for (const Peer& peer : peers_)
    if (peer.link && silent_seconds(peer) > kSilentAtSignal) silent_when_asked_ = peer.rank;
  tell(WatchWord::asked);
}

WatchMessage Watch::Thread::own_message() {
  const std::uint64_t changes = watch_.changes_.load(std::memory_order_acquire);
  if (changes != changes_) changed_ = now_;
  changes_ = changes;
  WatchMessage message{.word = WatchWord::alive, .rank = rank_, .step = watch_.step_};
  const double predicted = static_cast<double>(watch_.predicted_.load());
  message.state = {.stalled = seconds_between(changed_, now_),
                   .limit = std::max(options_.hang, kPatience * predicted),
                   .collectives = watch_.collectives_,
                   .is_collective = watch_.is_collective_,
                   .has_finished = end_ == End::finished};
  const auto operation = static_cast<std::size_t>(watch_.operation_.load());
  const std::lock_guard lock(watch_.mutex_);
  message.set_text(watch_.names_.at(operation));
  return message;
}

void Watch::Thread::talk() {
  talked_ = now_;
  const WatchMessage message = own_message();
  for (const Peer& peer : peers_)
    if (peer.link) peer.link->send(message);
}

void Watch::Thread::tell(WatchWord word, const std::string& text) {
  WatchMessage message{.word = word, .rank = rank_, .exit_code = exit_code_};
  message.set_text(text);
  for (const Peer& peer : peers_)
    if (peer.link) peer.link->send(message);
}

// A launcher that sees a rank end ends the others, whatever they have to say. So rank 0 has said who failed before that
// one ends, or it has had its time.
bool Watch::Thread::tell_own_failure() {
  if (!failed_) {
    failed_ = now_;
    if (is_judge())
      say(reason_.empty() ? failure_of(own_message(), "has failed")
                          : WatchFailure{rank_, fmt::format("tide: {}", reason_), true, exit_code_});
    tell(is_judge() && !reason_.empty() ? WatchWord::verdict : WatchWord::failed, reason_);
  }
  // Rank 0 waits as well, until the others have gone: what they have not read yet would be lost with its end, if there
  // is something of theirs that it has not read.
  if (verdict_ || seconds_between(*failed_, now_) > kFailedSeconds) return false;
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.link && !peer.link->is_closed(); });
}

void Watch::Thread::say(const WatchFailure& failure) {
  if (failure.speaks && !has_said_ && !muted_) options_.on_line(failure.line);
  has_said_ = true;
}

WatchFailure Watch::Thread::failure_of(const WatchMessage& of, const std::string& what) {
  std::string line =
      fmt::format("tide: rank {} on host {} {}", of.rank, hosts_[static_cast<std::size_t>(of.rank)], what);
  line += fmt::format(" during '{:.160}'", of.text.data());
  if (of.step >= 0) line += fmt::format(" of step {}", of.step);
  line += "; all ranks end";
  const std::lock_guard lock(watch_.mutex_);
  if (!watch_.advice_.empty()) line += "; " + watch_.advice_;
  return {of.rank, line, is_judge(), 1};
}

std::optional<WatchFailure> Watch::Thread::look() {
  if (verdict_) return verdict_;
  for (const Peer& peer : peers_)
    if (peer.link)
      if (std::optional<WatchFailure> failure = look_at(peer)) return failure;
  return is_judge() ? look_for_hang() : std::nullopt;
}

std::optional<WatchFailure> Watch::Thread::look_at(const Peer& peer) {
  if (peer.failed) return look_at_failed(peer);
  if (peer.link->is_closed()) {
    // All were asked to stop at once, and some are quicker. Whoever was asked earlier is the reason.
    const bool together = peer.asked && asked_ && seconds_between(*peer.asked, *asked_) < kStopSeconds / 2;
    if (together && seconds_between(*asked_, now_) < kAskedSeconds) return std::nullopt;
    return failure_of(peer.latest, peer.asked ? "was asked to stop" : "is dead");
  }
  if (silent_seconds(peer) > options_.silence || silent_when_asked_ == peer.rank)
    return failure_of(peer.latest, fmt::format("has been silent for {:.0f} s (stopped, or its network is gone)",
                                               std::max(silent_seconds(peer), kSilentAtSignal)));
  return std::nullopt;
}

std::optional<WatchFailure> Watch::Thread::look_at_failed(const Peer& peer) {
  if (peer.reason.text[0])
    return WatchFailure{peer.rank,
                        fmt::format("tide: rank {} on host {}: {}", peer.rank,
                                    hosts_[static_cast<std::size_t>(peer.rank)], peer.reason.text.data()),
                        is_judge(), peer.reason.exit_code};
  // It has something to say of its own once it knows that its rank was named. Rank 0 has named itself.
  const WatchFailure failure = failure_of(peer.latest, "has failed");
  if (!has_said_) {
    say(failure);
    if (is_judge()) peer.link->send(verdict_about(failure));
  }
  // A launcher that is asked to end all while it still speaks would cut it off: it is over when the launcher has seen
  // it end, and not when its connection has.
  const bool is_over = asked_ || seconds_between(*peer.failed, now_) > kFailedSeconds;
  return is_over ? std::optional(failure) : std::nullopt;
}

std::optional<WatchFailure> Watch::Thread::look_for_hang() {
  std::vector<const WatchMessage*> messages(hosts_.size());
  const WatchMessage own = own_message();
  messages[0] = &own;
  for (const Peer& peer : peers_) messages[static_cast<std::size_t>(peer.rank)] = &peer.latest;
  std::vector<RankState> states;
  for (const WatchMessage* const message : messages) states.push_back(message->state);
  const std::optional<int> hung = find_hung_rank(states);
  if (!hung) return std::nullopt;
  const WatchMessage& of = *messages[static_cast<std::size_t>(*hung)];
  return failure_of(of, fmt::format("has made no progress for {:.0f} s", of.state.stalled));
}

// Where rank 0 is gone.
bool Watch::Thread::speaks_for_host() const {
  for (int rank = 1; rank < rank_; ++rank)
    if (hosts_[static_cast<std::size_t>(rank)] == hosts_[static_cast<std::size_t>(rank_)]) return false;
  return true;
}

void Watch::Thread::end_all(WatchFailure failure) {
  if (!is_judge() && !verdict_ && !has_said_) {
    failure.speaks = speaks_for_host();
    if (!failure.speaks) std::this_thread::sleep_for(std::chrono::duration<double>(kSpeakerFirst));
  }
  if (muted_) failure.speaks = false;
  say(failure);
  if (is_judge()) {
    const WatchMessage verdict = verdict_about(failure);
    for (const Peer& peer : peers_)
      if (peer.link) peer.link->send(verdict);
  }
  options_.on_failure(failure);
}

Watch::Watch(Communicator& communicator, WatchOptions options)
    : predicted_(kNoLimit), thread_(std::make_unique<Thread>(*this, communicator, std::move(options))) {}

Watch::~Watch() = default;

Watch::Operation Watch::name(const std::string& text) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = operations_.try_emplace(text, static_cast<Operation>(names_.size()));
  if (is_new) names_.push_back(text);
  return found->second;
}

void Watch::begin(Operation operation, float predicted_seconds, bool is_collective) {
  operation_.store(operation, std::memory_order_relaxed);
  predicted_.store(predicted_seconds, std::memory_order_relaxed);
  is_collective_.store(is_collective, std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_release);
}

void Watch::begin(Operation operation, double predicted_seconds) {
  begin(operation, static_cast<float>(predicted_seconds), false);
}

void Watch::begin_collective(Operation operation, double predicted_seconds) {
  collectives_.fetch_add(1, std::memory_order_relaxed);
  begin(operation, static_cast<float>(predicted_seconds), true);
}

void Watch::continue_collective(Operation operation, double predicted_seconds) {
  begin(operation, static_cast<float>(predicted_seconds), true);
}

void Watch::idle() { begin(operation_.load(std::memory_order_relaxed), kNoLimit, false); }

void Watch::set_advice(const std::string& advice) {
  const std::lock_guard lock(mutex_);
  advice_ = advice;
}

void Watch::finish() { thread_->finish(); }

void Watch::fail(const std::string& reason, int exit_code) { thread_->fail(reason, exit_code); }

}  // namespace tide
