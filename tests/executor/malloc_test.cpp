// A step allocates nothing: the executor, the guard and our kernels call neither malloc nor
// free once they are built.
//
// Counted are all calls of malloc, calloc, realloc, free (of something), aligned_alloc,
// memalign and posix_memalign, from any thread, and with that operator new and delete,
// which come here. Not counted is memory that a library maps on its own.
//
// oneDNN 2.6 does allocate: every execute builds a map of its arguments and a few objects on
// the heap. That cannot be switched off; it is told apart by the caller's stack and printed.
#include <execinfo.h>
#include <gtest/gtest.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "executor/job.h"
#include "network/builder.h"
#include "support/spill.h"
#include "zoo/zoo.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TIDE_SANITIZED
#endif

namespace {

struct AddressRange {
  std::uintptr_t begin = 0, end = 0;
  [[nodiscard]] bool contains(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= begin && at < end;
  }
};

// Ready before any constructor runs, because malloc is.
constinit std::atomic<bool> counting{false};
constinit std::atomic<std::int64_t> ours{0}, onednn{0}, openmp{0};
constinit AddressRange dnnl_code, gomp_code;
constinit thread_local bool inside = false;  // backtrace() may allocate

[[maybe_unused]] void count_call() {
  if (!counting.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  std::array<void*, 64> stack;
  const int depth = backtrace(stack.data(), static_cast<int>(stack.size()));
  std::atomic<std::int64_t>* owner = &ours;
  for (int i = 0; i < depth; ++i) {
    if (gomp_code.contains(stack[static_cast<std::size_t>(i)])) owner = &openmp;
    if (!dnnl_code.contains(stack[static_cast<std::size_t>(i)])) continue;
    owner = &onednn;
    break;
  }
  owner->fetch_add(1, std::memory_order_relaxed);
  inside = false;
}

int find_libraries(dl_phdr_info* info, std::size_t /*size*/, void* /*unused*/) {
  AddressRange* const found = std::strstr(info->dlpi_name, "libdnnl") != nullptr   ? &dnnl_code
                              : std::strstr(info->dlpi_name, "libgomp") != nullptr ? &gomp_code
                                                                                   : nullptr;
  if (found == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    found->begin = info->dlpi_addr + segment.p_vaddr;
    found->end = found->begin + segment.p_memsz;
  }
  return 0;
}

}  // namespace

#ifndef TIDE_SANITIZED
// glibc's own functions, by the names that they keep when a program brings its own.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);

void* malloc(std::size_t size) {
  count_call();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  count_call();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  count_call();
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  count_call();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count_call();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  count_call();
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  if (memory != nullptr) count_call();
  __libc_free(memory);
}
}
#endif

namespace tide::test {
namespace {

// Calls by who made them.
struct Allocations {
  std::int64_t ours = 0;    // neither of these is on the stack
  std::int64_t onednn = 0;  // within a call into libdnnl
  std::int64_t openmp = 0;  // libgomp's own, or ours within a parallel region
};

void begin_allocations() {
  dl_iterate_phdr(find_libraries, nullptr);
  std::array<void*, 4> stack;
  static_cast<void>(backtrace(stack.data(), 4));  // loads the unwinder now, not while counting
  ours = onednn = openmp = 0;
  counting = true;
}

Allocations end_allocations() {
  counting = false;
  return {ours, onednn, openmp};
}

// Of one step, after one that may still warm up caches and threads.
Allocations allocations_of(Job& job) {
  job.set_state(formula_values(*job.step().network));
  job.run(0);
  job.set_batch(1);
  const StepState state = job.state(1, 0.01);
  begin_allocations();
  job.executor().run(state);
  return end_allocations();
}

class NoAllocations : public testing::Test {
 protected:
  void SetUp() override {
#ifdef TIDE_SANITIZED
    GTEST_SKIP() << "a sanitizer brings its own malloc: nothing can be counted in this build";
#endif
  }
};

TEST_F(NoAllocations, TheCounterCounts) {
  begin_allocations();
  // Volatile, so that no compiler leaves them out.
  std::vector<int>* volatile memory = new std::vector<int>(100);
  delete memory;
  void* volatile other = std::aligned_alloc(256, 512);
  std::free(other);
  const Allocations counted = end_allocations();
  EXPECT_EQ(counted.ours, 6);
  EXPECT_EQ(counted.onednn, 0);
  int* volatile uncounted = new int(3);
  delete uncounted;
  EXPECT_EQ(end_allocations().ours, 6);
}

TEST_F(NoAllocations, InTheExecutor) {
  const std::unique_ptr<Backend> backend = make_backend("null");
  const NetworkPtr network = shared_network(make_model("resnet50", Shape{1, 3, 64, 64}));
  for (const bool guard : {false, true}) {
    Job job(plan_for(network, *backend, "liveness", training_step(2)), *backend, {.guard = guard, .record = true});
    const Allocations counted = allocations_of(job);
    EXPECT_EQ(counted.ours, 0) << (guard ? "with" : "without") << " guard";
    EXPECT_EQ(counted.onednn + counted.openmp, 0);
  }
}

// Nor do the threads of the copy lanes, nor the spill file.
TEST_F(NoAllocations, InTheLanes) {
  const std::unique_ptr<Backend> backend = make_backend("null");
  const NetworkPtr network = shared_network(make_model("resnet50", Shape{1, 3, 64, 64}));
  int moved = 0, spilled = 0;
  Plan plan = testing_support::with_offloads(plan_for(network, *backend, "liveness", training_step(2)), 1, 50, moved);
  plan = testing_support::with_spills(plan, 1, 30, spilled);
  ASSERT_GT(spilled, 5);
  for (const double link : {0.0, 20e9}) {
    auto disk = std::make_unique<SpillFile>(std::filesystem::path(), testing_support::disk_bytes(plan));
    Job job(plan, *backend, {.guard = false, .record = true, .link_bytes_per_second = link}, std::move(disk));
    EXPECT_EQ(allocations_of(job).ours, 0);
  }
}

// Every kind of layer and optimizer, so that every kernel of our own runs.
NetworkPtr all_kernels() {
  Builder net("all kernels");
  Value x = net.input({1, 3, 16, 16});
  x = net.convolution(x, {.channels = 8, .window = Window::square(3, 1, 1)});
  x = net.relu(net.batch_norm(x));
  x = net.max_pool(net.lrn(x), {.window = Window::square(3, 2, 1)});
  const std::vector<Value> parts = net.split(x, {3, 5});
  const Value joined = net.concat({net.sigmoid(parts[0]), net.tanh(parts[1])});
  x = net.add({joined, net.multiply(x, joined), x});
  x = net.average_pool(net.dropout(x), {.window = Window::square(2, 2)});
  x = net.transposed_convolution(x, {.channels = 4, .window = Window::square(2, 2)});
  x = net.global_average_pool(x);
  net.softmax_cross_entropy(net.fully_connected(x, {.channels = 5}), {.label_smoothing = 0.1});
  return shared_network(std::move(net).build());
}

TEST_F(NoAllocations, InOurKernels) {
  for (const int threads : {1, 2}) {
    const std::unique_ptr<Backend> backend = cpu_backend(threads);
    if (!backend) GTEST_SKIP() << "this build has no cpu backend";
    for (const OptimizerKind kind : {OptimizerKind::momentum, OptimizerKind::adamw}) {
      StepOptions options = training_step(3);
      options.optimizer.kind = kind;
      options.optimizer.clip_norm = 1;
      Job job(plan_for(all_kernels(), *backend, "liveness", options), *backend);
      const Allocations counted = allocations_of(job);
      EXPECT_EQ(counted.ours, 0) << threads << " threads";
      EXPECT_EQ(counted.openmp, 0) << threads << " threads";
      EXPECT_GT(counted.onednn, 0) << "has oneDNN changed, or the counter gone blind?";
    }
  }
}

TEST_F(NoAllocations, InAResNet50OnTheCpu) {
  const std::unique_ptr<Backend> backend = cpu_backend();
  if (!backend) GTEST_SKIP() << "this build has no cpu backend";
  const NetworkPtr network = shared_network(make_model("resnet50", Shape{1, 3, 64, 64}));
  Job job(plan_for(network, *backend, "liveness", training_step(2)), *backend, {.guard = false, .record = true});
  const Allocations counted = allocations_of(job);
  EXPECT_EQ(counted.ours, 0);
  EXPECT_EQ(counted.openmp, 0);
  fmt::print("one step of resnet50, {} ops: {} calls of malloc or free within oneDNN\n",
             job.plan().phases.front().ops.size(), counted.onednn);
}

}  // namespace
}  // namespace tide::test
