// How values come back to the device: from host memory if they are there, else by being run again from
// values that come back in the same way.
#pragma once

#include <vector>

#include "planner/draft/recorder.h"

namespace tide {

class Returning {
 public:
  Returning(const StepFacts& facts, const Recorder& record)
      : facts_(facts), step_(facts.step()), record_(record), awaited_(step_.tensors.size(), 0) {}

  // fetch(tensor) copies it from host memory; replay(tensor) runs its task again, all sources of which are on
  // the device. The sources of a replay are awaited until it has run, so that making one of them does not
  // drop another.
  template <typename Fetch, typename Replay>
  void bring(TensorId wanted, const Fetch& fetch, const Replay& replay) {
    const auto fetched = [&](TensorId tensor) {
      if (!on_device(tensor) && record_.holds(tensor, Tier::host)) fetch(tensor);
      return on_device(tensor);
    };
    if (fetched(wanted)) return;
    await_sources(wanted, 1);
    std::vector<TensorId> chain{wanted};
    while (!chain.empty()) {
      const TensorId tensor = chain.back();
      const TensorId missing = on_device(tensor) ? TensorId() : missing_source(tensor);
      if (!missing.valid()) {
        chain.pop_back();
        await_sources(tensor, -1);
        if (!on_device(tensor)) replay(tensor);
      } else if (!fetched(missing)) {
        await_sources(missing, 1);
        chain.push_back(missing);
      }
    }
  }

  // Whether a replay on its way reads it.
  [[nodiscard]] bool is_awaited(TensorId tensor) const { return awaited_[tensor.index()] > 0; }

  // What rests goes back as soon as the tasks at hand are done with it: the one at `position`, unless it ran
  // already, and those close behind.
  [[nodiscard]] bool goes_back_to_rest(TensorId tensor, std::int32_t position, bool ran) const {
    constexpr std::int32_t kAtHand = 3;  // from a layer's first backward task to its updates
    if (!on_device(tensor) || is_awaited(tensor)) return false;
    const std::int32_t next = facts_.next_use(tensor, ran ? position : position - 1);
    return next == kNever || next > position + kAtHand;
  }

 private:
  [[nodiscard]] bool on_device(TensorId tensor) const { return record_.holds(tensor, Tier::device); }

  void await_sources(TensorId tensor, std::int32_t change) {
    for (const Operand& operand : step_.operands_of(facts_.replay(tensor)))
      if (operand.access == Access::read) awaited_[operand.tensor.index()] += change;
  }

  [[nodiscard]] TensorId missing_source(TensorId tensor) const {
    for (const Operand& operand : step_.operands_of(facts_.replay(tensor)))
      if (operand.access == Access::read && !on_device(operand.tensor)) return operand.tensor;
    return {};
  }

  const StepFacts& facts_;
  const Step& step_;
  const Recorder& record_;
  std::vector<std::int32_t> awaited_;  // by tensor: replays on their way that read it
};

}  // namespace tide
