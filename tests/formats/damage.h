// Files damaged at random, and how much memory a reader of them takes. Of a test binary, one source includes this.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"

namespace tide::test {

// What operator new has given out, now and at most.
inline std::atomic<std::int64_t> allocated{0}, most_allocated{0};

inline void* count_allocation(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const std::int64_t now = allocated += static_cast<std::int64_t>(::malloc_usable_size(memory));
  std::int64_t most = most_allocated;
  while (now > most && !most_allocated.compare_exchange_weak(most, now)) continue;
  return memory;
}

[[gnu::noinline]] inline void count_release(void* memory) {
  if (memory != nullptr) allocated -= static_cast<std::int64_t>(::malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace tide::test

[[gnu::noinline]] void* operator new(std::size_t size) {
  return tide::test::count_allocation(std::malloc(std::max<std::size_t>(1, size)));
}
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* const memory = std::malloc(std::max<std::size_t>(1, size));
  return memory == nullptr ? nullptr : tide::test::count_allocation(memory);
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t& nothrow) noexcept {
  return operator new(size, nothrow);
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  void* memory = nullptr;
  const auto at = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
  if (::posix_memalign(&memory, at, std::max<std::size_t>(1, size)) != 0) memory = nullptr;
  return tide::test::count_allocation(memory);
}
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return operator new(size, alignment);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { tide::test::count_release(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { tide::test::count_release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { tide::test::count_release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { tide::test::count_release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { tide::test::count_release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept { tide::test::count_release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  tide::test::count_release(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  tide::test::count_release(memory);
}

namespace tide::test {

class Damager {
 public:
  explicit Damager(unsigned seed) : random_(seed) {}

  // One to three of: bytes that are others, an end that is missing, bytes too many, bytes or a piece taken out or put
  // in twice, a binary number that is extreme, a written number that is another.
  [[nodiscard]] std::string operator()(std::string text) {
    for (unsigned changes = 1 + below(3); changes > 0; --changes) change(text);
    return text;
  }
  [[nodiscard]] unsigned below(std::size_t count) { return static_cast<unsigned>(random_() % count); }

 private:
  void change(std::string& text) {
    if (text.empty()) return;
    const std::size_t at = below(text.size());
    switch (below(9)) {
      case 0: text[at] = static_cast<char>(below(256)); return;
      case 1: text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << below(8))); return;
      case 2: text.resize(at); return;
      case 3:
        for (unsigned count = 1 + below(16); count > 0; --count)
          text.insert(text.begin() + static_cast<long>(at), letter());
        return;
      case 4: text.erase(at, 1 + below(16)); return;
      case 5: text.insert(below(text.size()), text.substr(at, 1 + below(64))); return;
      case 6: return put_extreme(text, at);
      default: return change_number(text, at);
    }
  }
  char letter() { return static_cast<char>(below(256)); }

  // In place of 1, 2, 4 or 8 bytes.
  void put_extreme(std::string& text, std::size_t at) {
    static constexpr std::uint64_t kExtremes[] = {0,
                                                  1,
                                                  0x7F,
                                                  0xFF,
                                                  0x7FFF,
                                                  0x7FFFFFFF,
                                                  0xFFFFFFFF,
                                                  0x7FFFFFFFFFFFFFFF,
                                                  0xFFFFFFFFFFFFFFFF,
                                                  0x0100000000000000,
                                                  0x4000000000000000};
    const std::uint64_t number = kExtremes[below(std::size(kExtremes))];
    const std::size_t bytes = std::size_t{1} << below(4);
    const bool highest_first = below(2) == 0;
    for (std::size_t i = 0; i < bytes && at + i < text.size(); ++i)
      text[at + i] = static_cast<char>(number >> 8 * (highest_first ? bytes - 1 - i : i));
  }

  // The next digits behind a place.
  void change_number(std::string& text, std::size_t at) {
    const std::size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return put_extreme(text, at);
    const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    static const char* const kNumbers[] = {
        "0", "-1", "1", "2147483648", "4294967296", "9223372036854775807", "1e999", "77777777", "18446744073709551616"};
    text.replace(begin, end - begin, kNumbers[below(std::size(kNumbers))]);
  }

  std::mt19937 random_;
};

struct DamageLimits {
  int mutations = 300;
  // What a reader may take beyond so much for each byte of the file.
  std::int64_t bytes = 256 << 10, per_byte = 32;
  // What each message begins with; "" where the file is not named.
  std::string begins = {};
};

// `read` has to read a damaged file, or to say in one line why not. Returns how many it refused.
inline int read_damaged(const std::string& whole, unsigned seed, const DamageLimits& limits,
                        const std::function<void(const std::string&)>& read) {
  read(whole);  // as it is
  Damager damage(seed);
  int refused = 0;
  for (int i = 0; i < limits.mutations; ++i) {
    const std::string text = damage(whole);
    const std::int64_t before = allocated;
    most_allocated = before;
    std::string message;
    try {
      read(text);
    } catch (const Error& error) {
      message = error.what();
      ++refused;
      EXPECT_FALSE(message.empty());
    } catch (const std::exception& error) {
      ADD_FAILURE() << "mutation " << i << ": no clear line but " << error.what();
    }
    const std::int64_t taken = most_allocated - before;
    EXPECT_LE(taken, limits.bytes + limits.per_byte * static_cast<std::int64_t>(text.size()))
        << "mutation " << i << " of " << text.size() << " bytes: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << "mutation " << i << ": " << message;
    EXPECT_LT(message.size(), 600U) << "mutation " << i << ": " << message;
    EXPECT_TRUE(message.empty() || message.starts_with(limits.begins)) << "mutation " << i << ": " << message;
  }
  return refused;
}

}  // namespace tide::test
