// Follows one phase of a plan on a backend. Everything is resolved at construction (kernels,
// addresses, whom each op waits for); a run then goes through flat tables: it decides nothing,
// looks nothing up and allocates nothing.
//
// Lanes run side by side (lanes.h): tasks on the calling thread, copies on threads of their
// own. With the guard on, everything runs on the calling thread in the plan's total order,
// which is one of the orders that the lanes allow: poison and canaries of a stay may only be
// touched while no op on any lane uses the memory.
//
// On a backend that records steps (StepQueue) the whole phase is recorded at construction and
// launched as one. That leaves no moment between ops at which the host could do something: the
// guard is ignored, as on any backend whose memory the host cannot address, and a plan with a
// tier behind the host or a slowed-down link runs op by op through the lanes instead.
//
// Not thread safe: one step at a time.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "backend/collectives.h"
#include "base/stopwatch.h"
#include "base/store.h"
#include "executor/arena.h"
#include "executor/guard.h"
#include "executor/lanes.h"
#include "executor/link.h"
#include "executor/op_observer.h"
#include "executor/staging.h"
#include "plan/plan.h"
#include "plan/timeline.h"

namespace tide {

// Whether this is a debug build of the library, whatever a program that uses it is.
[[nodiscard]] bool is_debug_build();

struct ExecutorOptions {
  // Canaries behind every stay and poison in every freed or fresh one, so that a wrong
  // plan or a kernel that writes too far is caught in the step where it happens.
  bool guard = is_debug_build();
  bool record = false;  // fill timeline()
  // Above 0: copies between device and host are slowed down to this, each way, as on a link
  // of that speed.
  double link_bytes_per_second = 0;
  SharedLink* shared_link = nullptr;  // instead: that of several executors, which it outlives
  // For steps of several ranks; outlives the executor.
  Collectives* collectives = nullptr;
  OpObserver* observer = nullptr;  // likewise
  // Where in the device arena, beyond the plan, there is room for the next inputs; 0: nowhere.
  Bytes input_ahead = {};
};

// Of all that the host fills in before a step.
[[nodiscard]] Bytes input_bytes(const Step& step);

// The memory of a job, shared by its step variants. Without a host arena make_executor()
// allocates what the plan needs.
struct Tiers {
  Tiers(Arena& device_memory, Arena* host_memory = nullptr, Store* disk = nullptr, Store* lent = nullptr)
      : device(device_memory), host(host_memory) {
    stores[Tier::disk] = disk;
    stores[Tier::lent] = lent;
  }
  Arena& device;
  Arena* host;
  PerTier<Store*> stores;     // of the tiers behind the host
  std::span<std::byte> peer;  // of another device, where this one reaches it
};

// Over all loss layers.
struct Metric {
  double loss = 0;      // mean over what the batch is compared with, weighted over loss layers
  double correct = 0;   // answers
  double answers = 0;   // that can be right: the labels that count, which whoever fills them in has counted
  double loss_sum = 0;  // over samples, of which the mean is `loss`; in parts, by their tree
};

class PhaseExecutor {
 public:
  // REQUIRES: what make_executor() requires, and host memory where the phase needs any. All of these
  // outlive it.
  PhaseExecutor(const Phase& phase, Backend& backend, const Tiers& tiers, const ExecutorOptions& options);

  // Where the phase was recorded, start() returns while the device works: the next batch may be
  // filled in before finish() waits. Elsewhere all is done in start().
  void start(const StepState& state);
  void finish();
  [[nodiscard]] bool is_recorded() const { return queue_ != nullptr; }
  // Between start() and finish(): what was filled in for the next step goes to the device already,
  // where it has room for it.
  void send_ahead();

  // What was sent ahead is not what the next start() takes.
  void forget_ahead() {
    if (staging_) staging_->forget_ahead();
  }

  // The samples, channels last, and their labels: fill before each start(). Several where the step works on
  // sub-batches.
  [[nodiscard]] std::vector<std::span<float>> inputs() const { return entries<float>(Role::x); }
  [[nodiscard]] std::vector<std::span<std::int32_t>> labels() const { return entries<std::int32_t>(Role::labels); }
  [[nodiscard]] Metric metric() const;

  // Values between steps, in logical order. REQUIRES: the tensor's storage is persistent.
  void write(TensorId tensor, std::span<const float> values);
  void read(TensorId tensor, std::span<float> values) const;
  // Bytes of such a storage as they lie there.
  void write_bytes(StorageId storage, Bytes offset, std::span<const std::byte> bytes);
  void read_bytes(StorageId storage, Bytes offset, std::span<std::byte> bytes) const;

  [[nodiscard]] const Step& step() const { return *phase_->step; }
  // The highest address that any run so far handed out.
  [[nodiscard]] Bytes high_water() const { return high_water_; }
  // Of the last run, between device and host.
  [[nodiscard]] Bytes copied_out() const { return total(Route::out); }
  [[nodiscard]] Bytes copied_in() const { return total(Route::in); }
  // Of the last run, between host and disk.
  [[nodiscard]] Bytes spilled() const { return total(Route::spill); }
  [[nodiscard]] Bytes fetched() const { return total(Route::fetch); }
  // Of the last run, between host and what other ranks lend.
  [[nodiscard]] Bytes sent() const { return total(Route::send); }
  [[nodiscard]] Bytes received() const { return total(Route::receive); }
  // Of the last run, between this device and another's memory.
  [[nodiscard]] Bytes pushed() const { return total(Route::push); }
  [[nodiscard]] Bytes pulled() const { return total(Route::pull); }
  // Of the last run, with ExecutorOptions::record.
  [[nodiscard]] const Timeline& timeline() const { return timeline_; }

 private:
  struct Prepared {
    Kernel kernel;                    // run; empty: a copy
    std::uint32_t first_address = 0;  // of its operands in addresses_
    std::byte* workspace = nullptr;
    const std::byte* copy_from = nullptr;  // copy; null in a store
    std::byte* copy_to = nullptr;
    Store* store = nullptr;  // that it copies from or to
    Bytes store_offset;
    Bytes copy_bytes;
    Route route = Route::out;
    Lane lane = Lane::compute;
    Bytes top;  // highest address in use from this op on
  };
  // What one lane's ops have added up to; each lane writes its own.
  struct alignas(64) Totals {
    Bytes top;
    PerRoute<Bytes> moved;
  };

  template <typename Value>
  [[nodiscard]] std::vector<std::span<Value>> entries(Role role) const {
    std::vector<std::span<Value>> found;
    for (const Tensor& tensor : phase_->step->tensors)
      if (tensor.tensor_class == TensorClass::input && tensor.role == role)
        found.push_back(
            {reinterpret_cast<Value*>(host_view(tensor.storage)), static_cast<std::size_t>(tensor.shape.elements())});
    return found;
  }
  void find_memory(const Tiers& tiers);
  void prepare();
  void prepare_copy(const Copy& copy, const PerTier<std::vector<Bytes>>& current, Prepared& prepared) const;
  // Null in a store.
  [[nodiscard]] std::byte* locate(Tier tier, Bytes address) const;
  [[nodiscard]] std::byte* entry_address(StorageId storage) const;
  // Where the host finds a storage between steps: its copy in staging, where there is one.
  [[nodiscard]] std::byte* host_view(StorageId storage) const;
  void stage_entries(Bytes input_ahead);
  void record_step();
  void run_op(std::size_t index);
  void run_in_order();
  void count(const Prepared& op, Totals& totals) const;
  void move(const Prepared& op);
  [[nodiscard]] Error failure(std::size_t index, const std::exception_ptr& error) const;
  [[nodiscard]] Bytes total(Route route) const;

  Backend& backend_;
  Arena& arena_;
  const Phase* phase_;
  Link link_;
  Arena* host_ = nullptr;  // null: the plan needs none
  PerTier<Store*> stores_;
  std::span<std::byte> peer_;
  std::vector<Prepared> ops_;
  std::vector<std::byte*> addresses_;
  std::vector<std::byte*> entry_;  // by storage: its address between steps, or null
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<Staging> staging_;  // null: the host can address the device's memory
  Collectives* collectives_;
  OpObserver* observer_;
  bool record_;
  Bytes entry_top_;
  Bytes high_water_;
  PerLane<Totals> totals_;
  const StepState* state_ = nullptr;  // of the step that runs
  Stopwatch since_start_;
  Timeline timeline_;
  std::unique_ptr<StepQueue> queue_;  // null: op by op
  std::unique_ptr<Lanes> lanes_;      // null: one lane only, a guard or a queue. Last: its threads use all of the above
};

}  // namespace tide
