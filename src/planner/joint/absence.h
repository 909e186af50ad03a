// Plays a step with decisions about single absences: which value is away from the device after which position,
// and how. What is away comes back by itself when something needs it: from host memory if it is there, else by
// being run again.
//
//   position        3        7              12
//   value      [made]--idle--[read]  (away)  [read]        decided: away after 7
//
// A replay touches values too, at the position that it runs for, so that what came back for its sake only can go again.
#pragma once

#include "planner/draft/recorder.h"

namespace tide {

enum class Away : std::uint8_t { kept, dropped, left };

class Absences {
 public:
  explicit Absences(std::size_t tensors) : list_(tensors) {}
  void decide(TensorId tensor, std::int32_t position, Away away);
  [[nodiscard]] Away after(TensorId tensor, std::int32_t position) const;

 private:
  struct Decision {
    std::int32_t position;
    Away away;
  };
  std::vector<std::vector<Decision>> list_;  // by tensor
};

// Ops between two touches of a value.
struct IdleSpan {
  TensorId tensor;
  std::int32_t position = 0;         // of the touch before
  std::int32_t first = 0, last = 0;  // ops
  bool in_host = false;              // whether host memory has it anyway
};

struct Played {
  Draft draft;
  std::vector<IdleSpan> idle, away;  // on the device without need; not on the device
};

// What replays would make of what.
class Replays {
 public:
  explicit Replays(const StepFacts& facts);
  [[nodiscard]] const std::vector<TensorId>& made_from(TensorId tensor) const { return made_from_[tensor.index()]; }
  // The last use of all that is made from it, and from that, and so on; -1: nothing is.
  [[nodiscard]] std::int32_t last_use_of_made(TensorId tensor) const { return last_use_[tensor.index()]; }

 private:
  std::vector<std::vector<TensorId>> made_from_;  // by tensor
  std::vector<std::int32_t> last_use_;
};

// REQUIRES: only values that a replay can make again by then, or that were left before, are dropped.
// Nothing where that takes more than `most` ops: whole chains are run again and again then.
[[nodiscard]] std::optional<Played> play(const StepFacts& facts, const Replays& replays, const Absences& absences,
                                         std::size_t most);

}  // namespace tide
