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
  // Takes pinned memory of its own, beside any budget: about one batch.
  Staging(Backend& backend, std::vector<Entry> entries);

  // Null where the storage is not among the entries.
  [[nodiscard]] std::byte* find(StorageId storage) const;
  // Over when they return, so that the next inputs may be filled in while the device works.
  void send();
  void fetch();

 private:
  Backend& backend_;
  std::vector<Entry> entries_;
  Arena memory_;
};

}  // namespace tide
