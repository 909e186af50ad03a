#include "data/ahead.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace tide {
namespace {

class Ahead final : public Dataset {
 public:
  Ahead(DatasetPtr whole, const AheadOptions& options)
      : whole_(std::move(whole)),
        values_(static_cast<std::size_t>(whole_->sample().per_sample())),
        labels_(static_cast<std::size_t>(whole_->labels_per_sample())),
        slots_(static_cast<std::size_t>(std::max<std::int64_t>(options.samples, 1))) {
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    const unsigned threads = options.threads > 0 ? static_cast<unsigned>(options.threads) : cores;
    for (unsigned t = 0; t < threads; ++t) threads_.emplace_back([this] { work(); });
  }
  ~Ahead() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] std::string name() const override { return whole_->name(); }
  [[nodiscard]] std::int64_t size() const override { return whole_->size(); }
  [[nodiscard]] Shape sample() const override { return whole_->sample(); }
  [[nodiscard]] std::int64_t classes() const override { return whole_->classes(); }
  [[nodiscard]] std::int64_t labels_per_sample() const override { return whole_->labels_per_sample(); }
  [[nodiscard]] bool varies() const override { return whole_->varies(); }
  [[nodiscard]] bool has_gaps() const override { return whole_->has_gaps(); }
  [[nodiscard]] std::vector<std::string> class_names() const override { return whole_->class_names(); }
  [[nodiscard]] std::optional<ImageReading> reading() const override { return whole_->reading(); }

  void expect(std::vector<std::int64_t> indices) const override {
    std::unique_lock lock(mutex_);
    // What threads are at still goes to the old order's slots.
    idle_.wait(lock, [this] { return busy_ == 0; });
    expected_ = std::move(indices);
    states_.assign(expected_.size(), State::waiting);
    places_.clear();
    for (std::size_t i = 0; i < expected_.size(); ++i) places_.emplace(expected_[i], i);
    next_ = oldest_ = 0;
    lock.unlock();
    wake_.notify_all();
  }

  void read(std::int64_t index, std::span<float> values, std::span<std::int32_t> labels) const override {
    std::unique_lock lock(mutex_);
    const auto found = places_.find(index);
    const std::size_t place = found == places_.end() ? expected_.size() : found->second;
    if (place == expected_.size() || states_[place] == State::waiting || states_[place] == State::taken) {
      // Nobody has begun with it, so it need not be waited for.
      if (place < expected_.size()) take(place);
      lock.unlock();
      wake_.notify_all();
      return whole_->read(index, values, labels);
    }
    read_.wait(lock, [&] { return states_[place] == State::read; });
    Slot& slot = slots_[place % slots_.size()];
    const std::exception_ptr error = std::exchange(slot.error, nullptr);
    // The slot is nobody else's until it is taken.
    states_[place] = State::copied;
    lock.unlock();
    if (!error) {
      std::copy(slot.values.begin(), slot.values.end(), values.begin());
      std::copy(slot.labels.begin(), slot.labels.end(), labels.begin());
    }
    lock.lock();
    take(place);
    lock.unlock();
    wake_.notify_all();
    if (error) std::rethrow_exception(error);
  }

 private:
  enum class State : std::uint8_t { waiting, begun, read, copied, taken };
  struct Slot {
    std::vector<float> values;
    std::vector<std::int32_t> labels;
    std::exception_ptr error;
  };

  // REQUIRES: the mutex is held.
  void take(std::size_t place) const {
    states_[place] = State::taken;
    while (oldest_ < states_.size() && states_[oldest_] == State::taken) ++oldest_;
  }
  [[nodiscard]] bool may_begin() const {
    while (next_ < expected_.size() && states_[next_] != State::waiting) ++next_;
    return next_ < expected_.size() && next_ < oldest_ + slots_.size();
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ends_ || may_begin(); });
      if (ends_) return;
      const std::size_t place = next_++;
      const std::int64_t index = expected_[place];
      states_[place] = State::begun;
      ++busy_;
      Slot& slot = slots_[place % slots_.size()];
      lock.unlock();
      slot.values.resize(values_);
      slot.labels.resize(labels_);
      try {
        whole_->read(index, slot.values, slot.labels);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
      states_[place] = State::read;
      if (--busy_ == 0) idle_.notify_all();
      read_.notify_all();
    }
  }

  DatasetPtr whole_;
  std::size_t values_, labels_;  // of a sample
  mutable std::mutex mutex_;
  mutable std::condition_variable wake_, read_, idle_;
  mutable std::vector<std::int64_t> expected_;
  mutable std::vector<State> states_;  // by place among the expected
  mutable std::unordered_map<std::int64_t, std::size_t> places_;
  mutable std::vector<Slot> slots_;            // of place p: p modulo their number
  mutable std::size_t next_ = 0, oldest_ = 0;  // to begin with; not taken yet
  mutable int busy_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

DatasetPtr read_ahead(DatasetPtr whole, const AheadOptions& options) {
  return std::make_shared<Ahead>(std::move(whole), options);
}

}  // namespace tide
