// What every communicator has to do, whatever its ranks are: made by all ranks at once. Throws an Error that says what
// came out wrong.
#pragma once

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "cluster/communicator.h"

namespace tide::test {

inline void expect(bool holds, const char* what, const Communicator& communicator) {
  if (!holds) throw Error("rank {} of {}: {}", communicator.rank(), communicator.size(), what);
}

// Small whole numbers, so that sums are exact in any order.
inline float value_of(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 101);
}

inline float sum_of(int ranks, std::size_t i) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value_of(rank, i);
  return sum;
}

template <typename Value = float>
std::vector<Value> values_of(int rank, std::size_t count) {
  std::vector<Value> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<Value>(value_of(rank, i));
  return values;
}

template <typename Value>
void check_all_reduce(Communicator& communicator, std::size_t count) {
  std::vector<Value> values = values_of<Value>(communicator.rank(), count);
  communicator.all_reduce(std::span(values));
  bool right = true;
  for (std::size_t i = 0; i < count; ++i)
    right = right && values[i] == static_cast<Value>(sum_of(communicator.size(), i));
  expect(right, "all_reduce", communicator);
}

// Of values whose sum depends on the order.
inline void check_same_bits(Communicator& communicator, std::size_t count) {
  const auto own = static_cast<std::size_t>(communicator.rank());
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i * 7 + own * 131)) * 1e3F;
  communicator.all_reduce(std::span(values));
  std::vector<float> all(count * static_cast<std::size_t>(communicator.size()));
  std::copy(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(own * count));
  communicator.all_gather(std::as_writable_bytes(std::span(all)));
  for (std::size_t rank = 0; rank * count < all.size(); ++rank)
    expect(std::memcmp(&all[rank * count], values.data(), count * sizeof(float)) == 0, "all_reduce: bits",
           communicator);
}

inline void check_reduce_scatter(Communicator& communicator, std::size_t part) {
  std::vector<float> values = values_of(communicator.rank(), part * static_cast<std::size_t>(communicator.size()));
  communicator.reduce_scatter(values);
  bool right = true;
  const std::size_t begin = part * static_cast<std::size_t>(communicator.rank());
  for (std::size_t i = begin; i < begin + part; ++i) right = right && values[i] == sum_of(communicator.size(), i);
  expect(right, "reduce_scatter", communicator);
}

inline void check_all_gather(Communicator& communicator, std::size_t part) {
  const auto ranks = static_cast<std::size_t>(communicator.size()), own = static_cast<std::size_t>(communicator.rank());
  std::vector<float> values(part * ranks, -1.0F);
  for (std::size_t i = own * part; i < (own + 1) * part; ++i) values[i] = value_of(communicator.rank(), i);
  communicator.all_gather(std::as_writable_bytes(std::span(values)));
  bool right = true;
  for (std::size_t i = 0; i < values.size(); ++i) right = right && values[i] == value_of(static_cast<int>(i / part), i);
  expect(right, "all_gather", communicator);
}

inline void check_broadcast(Communicator& communicator, std::size_t count) {
  for (int root = 0; root < communicator.size(); ++root) {
    std::vector<float> values = values_of(communicator.rank(), count);
    communicator.broadcast(std::as_writable_bytes(std::span(values)), root);
    expect(values == values_of(root, count), "broadcast", communicator);
  }
}

inline void check_exchange(Communicator& communicator, std::size_t count) {
  const std::vector<float> send = values_of(communicator.rank(), count);
  std::vector<float> receive(count);
  for (int k = 0; k < communicator.size(); ++k) {  // pairs, in which a rank may be with itself
    const int peer = (k - communicator.rank() + communicator.size()) % communicator.size();
    communicator.exchange(peer, std::as_bytes(std::span(send)), std::as_writable_bytes(std::span(receive)));
    expect(receive == values_of(peer, count), "exchange", communicator);
  }
}

inline void check_gather(Communicator& communicator) {
  const auto text_of = [](int rank) {
    return rank == 0 ? std::string()
                     : std::string(static_cast<std::size_t>(rank) * 1000, static_cast<char>('a' + rank % 26));
  };
  const std::vector<std::string> all = communicator.gather(text_of(communicator.rank()));
  expect(all.size() == static_cast<std::size_t>(communicator.size()), "gather: number of texts", communicator);
  for (int rank = 0; rank < communicator.size(); ++rank)
    expect(all[static_cast<std::size_t>(rank)] == text_of(rank), "gather", communicator);
}

// The duplicate is used by another thread while this one goes on.
inline void check_duplicate(Communicator& communicator) {
  const std::unique_ptr<Communicator> second = communicator.duplicate();
  expect(second->rank() == communicator.rank() && second->size() == communicator.size(), "duplicate", communicator);
  std::string wrong;
  std::thread other([&] {
    try {
      for (std::size_t i = 0; i < 20; ++i) check_all_reduce<float>(*second, 100 + i);
    } catch (const Error& error) {
      wrong = error.what();
    }
  });
  for (std::size_t i = 0; i < 20; ++i) check_all_reduce<double>(communicator, 200 + i);
  other.join();
  if (!wrong.empty()) throw Error("on a duplicate: {}", wrong);
}

// All ranks but the last wait for it when the job is given up: on each process, by a thread that does not wait.
inline void check_interrupt(Communicator& communicator) {
  const std::unique_ptr<Communicator> second = communicator.duplicate();
  communicator.barrier();
  std::string text;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    second->interrupt();
  });
  if (communicator.rank() == communicator.size() - 1) {
    other.join();
    other = std::thread([] {});
  }
  try {
    if (communicator.rank() == 0) {
      std::vector<float> buffer(1000);
      const int last = communicator.size() - 1;
      communicator.exchange(last, std::as_bytes(std::span(buffer)), std::as_writable_bytes(std::span(buffer)));
    } else {
      communicator.barrier();
    }
  } catch (const Error& error) {
    text = error.what();
  }
  other.join();
  expect(text == "the job has been given up", "interrupt", communicator);
}

// All but interrupt(), behind which nothing works.
inline void check_calls(Communicator& communicator) {
  const std::size_t large = communicator.size() > 8 ? 1003 : 100'003;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5}, large}) {
    check_all_reduce<float>(communicator, count);
    check_all_reduce<double>(communicator, count);
    if (count > 0) check_same_bits(communicator, count);
    check_reduce_scatter(communicator, count);
    check_all_gather(communicator, count);
    check_broadcast(communicator, count);
    check_exchange(communicator, count);
  }
  communicator.barrier();
  check_gather(communicator);
  check_duplicate(communicator);
}

}  // namespace tide::test
