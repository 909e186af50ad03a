#include "cluster/threads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace tide {
namespace {

class ThreadGroup;

// All that was duplicated from one set of ranks: given up together.
struct ThreadJob {
  std::mutex mutex;
  bool is_over = false;
  std::vector<std::weak_ptr<ThreadGroup>> groups;
};

// What the ranks of one communicator share. A call is: post where the own data is, meet, work on the data of all, meet
// again. Nobody leaves before the last one has done its work, not even where the job is given up meanwhile: others may
// be reading what it posted.
class ThreadGroup {
 public:
  struct Posted {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  using Look = std::function<void(std::span<const Posted>)>;

  ThreadGroup(std::shared_ptr<ThreadJob> job, std::vector<std::string> hosts)
      : hosts_(std::move(hosts)),
        posted_(hosts_.size()),
        wakes_(hosts_.size()),
        letters_(hosts_.size()),
        job_(std::move(job)) {}

  [[nodiscard]] const std::vector<std::string>& hosts() const { return hosts_; }
  [[nodiscard]] const std::shared_ptr<ThreadJob>& job() const { return job_; }
  [[nodiscard]] int size() const { return static_cast<int>(hosts_.size()); }

  void together(int rank, Posted mine, const Look& look);
  void exchange(int rank, int peer, std::span<const std::byte> send, std::span<std::byte> receive);
  void stop();

 private:
  // What a rank sends to the one that it exchanges with; free where `to` is none.
  struct Letter {
    int to = -1;
    std::span<const std::byte> data;
  };

  [[nodiscard]] static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  void meet(std::unique_lock<std::mutex>& lock, int rank);
  void wait(std::unique_lock<std::mutex>& lock, int rank, const std::function<bool()>& done);
  // Without the lock. Nobody begins when the job is over, and nobody leaves then while others are still at it.
  void work(std::unique_lock<std::mutex>& lock, int rank, const std::function<void()>& look);
  [[noreturn]] void give_up(std::unique_lock<std::mutex>& lock, int rank);
  void wake_all();

  const std::vector<std::string> hosts_;
  std::mutex mutex_;
  std::vector<Posted> posted_;
  std::vector<std::condition_variable> wakes_;  // by rank
  std::vector<Letter> letters_;                 // by sender
  int arrived_ = 0;
  std::size_t meetings_ = 0;
  int working_ = 0;  // ranks that look at what others posted
  bool is_over_ = false;
  const std::shared_ptr<ThreadJob> job_;
};

void ThreadGroup::wake_all() {
  for (std::condition_variable& wake : wakes_) wake.notify_all();
}

void ThreadGroup::stop() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  wake_all();
}

void ThreadGroup::give_up(std::unique_lock<std::mutex>& lock, int rank) {
  wakes_[at(rank)].wait(lock, [&] { return working_ == 0; });
  throw Error("the job has been given up");
}

void ThreadGroup::wait(std::unique_lock<std::mutex>& lock, int rank, const std::function<bool()>& done) {
  wakes_[at(rank)].wait(lock, [&] { return done() || is_over_; });
  if (!done()) give_up(lock, rank);
}

void ThreadGroup::work(std::unique_lock<std::mutex>& lock, int rank, const std::function<void()>& look) {
  if (is_over_) give_up(lock, rank);
  ++working_;
  lock.unlock();
  look();
  lock.lock();
  if (--working_ == 0 && is_over_) wake_all();
}

void ThreadGroup::meet(std::unique_lock<std::mutex>& lock, int rank) {
  const std::size_t meeting = meetings_;
  if (++arrived_ == size()) {
    arrived_ = 0;
    ++meetings_;
    wake_all();
  } else {
    wait(lock, rank, [&] { return meetings_ != meeting; });
  }
}

void ThreadGroup::together(int rank, Posted mine, const Look& look) {
  std::unique_lock lock(mutex_);
  if (is_over_) throw Error("the job has been given up");
  posted_[at(rank)] = mine;
  meet(lock, rank);
  assert(std::all_of(posted_.begin(), posted_.end(), [&](const Posted& posted) { return posted.bytes == mine.bytes; }));
  work(lock, rank, [&] { look(posted_); });
  meet(lock, rank);
}

void ThreadGroup::exchange(int rank, int peer, std::span<const std::byte> send, std::span<std::byte> receive) {
  std::unique_lock lock(mutex_);
  if (is_over_) throw Error("the job has been given up");
  Letter& mine = letters_[at(rank)];
  Letter& theirs = letters_[at(peer)];
  mine = {peer, send};
  wakes_[at(peer)].notify_all();
  wait(lock, rank, [&] { return theirs.to == rank; });
  assert(theirs.data.size() == receive.size());
  work(lock, rank, [&] { std::copy(theirs.data.begin(), theirs.data.end(), receive.begin()); });
  theirs.to = -1;
  wakes_[at(peer)].notify_all();
  wait(lock, rank, [&] { return mine.to < 0; });
}

// Elements [begin, end) of all ranks, summed in the order of the ranks and handed to `store` a piece at a time.
template <typename Value, typename Store>
void sum_ranks(std::span<const ThreadGroup::Posted> posted, std::size_t begin, std::size_t end, const Store& store) {
  constexpr std::size_t kPiece = 1024;
  std::array<Value, kPiece> sum;
  for (std::size_t first = begin; first < end; first += kPiece) {
    const std::size_t count = std::min(kPiece, end - first);
    const auto* const start = static_cast<const Value*>(posted.front().data) + first;
    std::copy(start, start + count, sum.begin());
    for (const ThreadGroup::Posted& of_rank : posted.subspan(1)) {
      const auto* const more = static_cast<const Value*>(of_rank.data) + first;
      for (std::size_t i = 0; i < count; ++i) sum[i] += more[i];
    }
    store(first, std::span<const Value>(sum.data(), count));
  }
}

class ThreadRank final : public Communicator {
 public:
  ThreadRank(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return group_->size(); }
  [[nodiscard]] bool in_one_process() const override { return true; }
  [[nodiscard]] const std::string& host(int rank) const override {
    return group_->hosts()[static_cast<std::size_t>(rank)];
  }

  void all_reduce(std::span<float> values) override { sum_all(values); }
  void all_reduce(std::span<double> values) override { sum_all(values); }

  void reduce_scatter(std::span<float> values) override {
    assert(values.size() % ranks() == 0);
    const std::size_t part = values.size() / ranks(), begin = part * own();
    together(values, [&](std::span<const Posted> posted) {
      sum_ranks<float>(posted, begin, begin + part, [&](std::size_t first, std::span<const float> sum) {
        std::copy(sum.begin(), sum.end(), values.begin() + static_cast<std::ptrdiff_t>(first));
      });
    });
  }

  void all_gather(std::span<std::byte> values) override {
    assert(values.size() % ranks() == 0);
    const std::size_t part = values.size() / ranks();
    together(values, [&](std::span<const Posted> posted) {
      for (std::size_t other = 0; other < ranks(); ++other)
        if (other != own() && part > 0)
          std::memcpy(&values[other * part], static_cast<const std::byte*>(posted[other].data) + other * part, part);
    });
  }

  void broadcast(std::span<std::byte> values, int root) override {
    together(values, [&](std::span<const Posted> posted) {
      if (root != rank_ && !values.empty())
        std::memcpy(values.data(), posted[static_cast<std::size_t>(root)].data, values.size());
    });
  }

  void exchange(int peer, std::span<const std::byte> send, std::span<std::byte> receive) override {
    group_->exchange(rank_, peer, send, receive);
  }

  void barrier() override {
    together(std::span<std::byte>(), [](std::span<const Posted> /*posted*/) {});
  }

  std::vector<std::string> gather(const std::string& text) override {
    std::vector<std::string> all(ranks());
    std::string mine = text;
    together(std::span(&mine, 1), [&](std::span<const Posted> posted) {
      for (std::size_t other = 0; other < ranks(); ++other)
        all[other] = *static_cast<const std::string*>(posted[other].data);
    });
    return all;
  }

  std::unique_ptr<Communicator> duplicate() override {
    std::shared_ptr<ThreadGroup> made;
    if (rank_ == 0) {
      const std::shared_ptr<ThreadJob>& job = group_->job();
      made = std::make_shared<ThreadGroup>(job, group_->hosts());
      const std::lock_guard lock(job->mutex);
      if (job->is_over) made->stop();
      job->groups.push_back(made);
    }
    std::shared_ptr<ThreadGroup> first;
    together(std::span(&made, 1), [&](std::span<const Posted> posted) {
      first = *static_cast<const std::shared_ptr<ThreadGroup>*>(posted.front().data);
    });
    return std::make_unique<ThreadRank>(first, rank_);
  }

  void interrupt() noexcept override {
    const std::shared_ptr<ThreadJob>& job = group_->job();
    const std::lock_guard lock(job->mutex);
    job->is_over = true;
    for (const std::weak_ptr<ThreadGroup>& entry : job->groups)
      if (const std::shared_ptr<ThreadGroup> group = entry.lock()) group->stop();
  }

 private:
  using Posted = ThreadGroup::Posted;

  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(size()); }
  [[nodiscard]] std::size_t own() const { return static_cast<std::size_t>(rank_); }

  template <typename Value, typename Work>
  void together(std::span<Value> values, const Work& work) {
    group_->together(rank_, {values.data(), values.size_bytes()}, work);
  }

  // Each rank sums a part of the elements, and is the only one to touch them in anybody's values.
  template <typename Value>
  void sum_all(std::span<Value> values) {
    const std::size_t begin = values.size() * own() / ranks(), end = values.size() * (own() + 1) / ranks();
    together(values, [&](std::span<const Posted> posted) {
      sum_ranks<Value>(posted, begin, end, [&](std::size_t first, std::span<const Value> sum) {
        for (const Posted& of_rank : posted)
          std::copy(sum.begin(), sum.end(), static_cast<Value*>(of_rank.data) + first);
      });
    });
  }

  const std::shared_ptr<ThreadGroup> group_;
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_ranks(int size, std::vector<std::string> hosts) {
  assert(size > 0 && (hosts.empty() || hosts.size() == static_cast<std::size_t>(size)));
  if (hosts.empty()) hosts.assign(static_cast<std::size_t>(size), "localhost");
  const auto job = std::make_shared<ThreadJob>();
  const auto group = std::make_shared<ThreadGroup>(job, std::move(hosts));
  job->groups.push_back(group);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_unique<ThreadRank>(group, rank));
  return ranks;
}

void on_ranks(std::span<const std::unique_ptr<Communicator>> ranks, const std::function<void(Communicator&)>& function,
              bool interrupts) {
  std::vector<std::exception_ptr> thrown(ranks.size());
  std::atomic<int> first{-1};
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      threads.emplace_back([&, rank] {
        try {
          function(*ranks[rank]);
        } catch (...) {
          thrown[rank] = std::current_exception();
          int nobody = -1;
          first.compare_exchange_strong(nobody, static_cast<int>(rank));
          if (interrupts) ranks[rank]->interrupt();
        }
      });
  }
  if (first >= 0) std::rethrow_exception(thrown[static_cast<std::size_t>(first.load())]);
}

void on_thread_ranks(int size, const std::function<void(Communicator&)>& function) {
  on_ranks(make_thread_ranks(size), function, true);
}

}  // namespace tide
