#include "backend/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "base/size_text.h"

namespace tide {
namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kAddressSpace = std::int64_t{1} << 47;

}  // namespace

std::byte* allocate_host(Bytes bytes) {
  // An arena is touched from end to end in every step: huge pages save most of its TLB misses.
  const std::int64_t alignment = bytes.count() >= 2 * kHugePage ? kHugePage : kAlignment;
  const Bytes size = Bytes(std::max<std::int64_t>(bytes.count(), 1)).aligned(alignment);
  void* memory = nullptr;
  if (size.count() < kAddressSpace) memory = std::aligned_alloc(static_cast<std::size_t>(alignment), size.size());
  if (memory == nullptr) throw Error("cannot allocate {} of host memory; use a smaller budget", format_size(bytes));
  if (alignment == kHugePage) madvise(memory, size.size(), MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

void release_host(std::byte* memory, Bytes /*bytes*/) noexcept { std::free(memory); }

}  // namespace tide
