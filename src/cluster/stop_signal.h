// SIGTERM as something to poll for. A launcher sends it to all ranks moments after one has died, and kills them a
// second later; whoever wants to say something about it has to take the signal.
#pragma once

namespace tide {

// While one lives. Of several in a process only the first takes the signal; the others never hear of it.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Becomes readable when the signal has come; -1 where another one has taken it.
  [[nodiscard]] int descriptor() const { return read_; }
  // Reads what there is: whether the signal has come since.
  [[nodiscard]] bool take();

 private:
  int read_ = -1, write_ = -1;
};

// Does what SIGTERM does to a process that takes no signals.
void end_by_stop_signal();

}  // namespace tide
