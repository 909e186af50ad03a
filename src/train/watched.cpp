#include "train/watched.h"

#include "cluster/forwarding.h"

namespace tide {
namespace {

class WatchedRanks final : public ForwardingCommunicator {
 public:
  WatchedRanks(Communicator& communicator, Watch& watch)
      : ForwardingCommunicator(communicator),
        watch_(watch),
        sum_(watch.name("a sum over the ranks")),
        hand_out_(watch.name("handing something to the ranks")),
        meet_(watch.name("waiting for the other ranks")) {}

  void all_reduce(std::span<float> values) override {
    tell(sum_, [&] { real().all_reduce(values); });
  }
  void all_reduce(std::span<double> values) override {
    tell(sum_, [&] { real().all_reduce(values); });
  }
  void reduce_scatter(std::span<float> values) override {
    tell(sum_, [&] { real().reduce_scatter(values); });
  }
  void all_gather(std::span<std::byte> values) override {
    tell(hand_out_, [&] { real().all_gather(values); });
  }
  void broadcast(std::span<std::byte> values, int root) override {
    tell(hand_out_, [&] { real().broadcast(values, root); });
  }
  void exchange(int peer, std::span<const std::byte> send, std::span<std::byte> receive) override {
    tell(hand_out_, [&] { real().exchange(peer, send, receive); });
  }
  void barrier() override {
    tell(meet_, [&] { real().barrier(); });
  }
  [[nodiscard]] std::vector<std::string> gather(const std::string& text) override {
    std::vector<std::string> all;
    tell(hand_out_, [&] { all = real().gather(text); });
    return all;
  }

 private:
  template <typename Call>
  void tell(Watch::Operation operation, const Call& call) {
    watch_.begin_collective(operation, 0);
    call();
    watch_.idle();
  }

  Watch& watch_;
  Watch::Operation sum_, hand_out_, meet_;
};

}  // namespace

void WatchedOps::on_phase(const Phase& phase) {
  std::vector<Named>& names = phases_[&phase];
  names.clear();  // of a plan that stood there before
  const Step& step = *phase.step;
  for (const Op& op : phase.ops) {
    if (op.is_run()) {
      const Run& run = op.run();
      names.push_back({watch_.name(task_name(step, run.task)), cost_.task_seconds(step, run.task, run.algorithm)});
    } else {
      const Copy& copy = op.copy();
      names.push_back({watch_.name(fmt::format("copy from {} to {}", tier_name(copy.from), tier_name(copy.to))),
                       cost_.copy_seconds(step.storage(copy.storage).bytes, copy.from, copy.to)});
    }
  }
}

void WatchedOps::on_recorded_begin(const Phase& phase) noexcept {
  double seconds = 0;
  for (const Named& named : phases_.at(&phase)) seconds += named.seconds;
  watch_.begin(recorded_, seconds);
}

void WatchedOps::on_recorded_end(const Phase& /*phase*/) noexcept { watch_.idle(); }

void WatchedOps::on_begin(const Phase& phase, std::size_t op) noexcept {
  const Named& named = phases_.at(&phase)[op];
  const std::lock_guard lock(mutex_);
  current_[phase.ops[op].lane] = &named;
  if (phase.ops[op].lane == Lane::reduce) watch_.begin_collective(named.operation, named.seconds);
  announce();
}

void WatchedOps::on_end(const Phase& phase, std::size_t op) noexcept {
  const std::lock_guard lock(mutex_);
  current_[phase.ops[op].lane] = nullptr;
  announce();
}

void WatchedOps::announce() noexcept {
  for (const Lane lane : {Lane::compute, Lane::in, Lane::out})
    if (const Named* const named = current_[lane]) return watch_.begin(named->operation, named->seconds);
  if (const Named* const named = current_[Lane::reduce])
    watch_.continue_collective(named->operation, named->seconds);
  else
    watch_.idle();
}

std::unique_ptr<Communicator> make_watched(Communicator& communicator, Watch& watch) {
  return std::make_unique<WatchedRanks>(communicator, watch);
}

}  // namespace tide
