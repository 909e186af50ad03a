// Runs one function on several ranks that are threads of this process.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "cluster/threads.h"

namespace tide::test {

// Throws what the first rank that failed has thrown; whoever waits for it then is interrupted, if `interrupts`.
inline void on_ranks(std::vector<std::unique_ptr<Communicator>>& ranks,
                     const std::function<void(Communicator&)>& function, bool interrupts = false) {
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

inline void on_thread_ranks(int size, const std::function<void(Communicator&)>& function) {
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_ranks(size);
  on_ranks(ranks, function, true);
}

}  // namespace tide::test
