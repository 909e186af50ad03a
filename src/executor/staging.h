// Host copies of what a step takes in and gives out, for a device whose memory the host cannot
// address: inputs are filled here and sent before a step, metrics are fetched behind it.
#pragma once

#include <vector>

#include "executor/arena.h"

namespace tide {

class Staging {
 public:
  struct Entry {
    StorageId storage;
    std::byte* device = nullptr;
    Bytes bytes;
    bool is_input = false;  // otherwise a result
    Bytes offset{};         // filled in here
  };
  // Takes pinned memory of its own, beside any budget: about one batch. `ahead` is device memory
  // for the next inputs, of input_bytes(), or null.
  Staging(Backend& backend, std::vector<Entry> entries, std::byte* ahead = nullptr);

  // Null where the storage is not among the entries.
  [[nodiscard]] std::byte* find(StorageId storage) const;
  // Over when they return, so that the next inputs may be filled in while the device works.
  void send();
  void fetch();
  // Sends the inputs ahead while the device works on others, so that send() finds them there.
  void send_ahead();
  // What was sent ahead is not what the next step takes.
  void forget_ahead() { is_ahead_ = false; }

 private:
  Backend& backend_;
  std::vector<Entry> entries_;
  Arena memory_;
  std::byte* ahead_;
  bool is_ahead_ = false;
};

}  // namespace tide
