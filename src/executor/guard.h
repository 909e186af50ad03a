// Canaries and poison. Every stay is filled with a pattern when it begins and again when
// it ends, and the bytes between its size and the next aligned address are watched:
//
//   |<------ storage ------>|<- canary ->|  next address
//
// A read of memory that the plan has freed or not yet filled yields NaN; a write past the
// end of an operand or a workspace is reported with the op that did it. A storage whose
// size is a multiple of the alignment has no canary.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace tide {

class Guard {
 public:
  // Addresses by residency (null in a store, where nothing is watched) and by op.
  Guard(const Phase& phase, std::vector<std::byte*> residencies, std::vector<std::byte*> workspaces);

  void begin_step();
  // These throw an Error that names the op and the tensor where a canary was overwritten.
  void before(std::size_t op);
  void after(std::size_t op);
  void end_step();

 private:
  struct Region {
    std::byte* address = nullptr;
    std::size_t bytes = 0, aligned = 0;
    StorageId storage;   // invalid: a workspace
    bool keeps = false;  // holds a value when the step starts
  };

  void find_touched();
  [[nodiscard]] std::string name(StorageId storage) const;
  [[nodiscard]] std::string name(const Op& op) const;
  void fill(const Region& region) const;
  void set_canary(const Region& region) const;
  // `who` makes the beginning of the message; it is called only when there is one.
  template <typename Who>
  void check(const Region& region, const Who& who) const;

  const Phase& phase_;
  std::vector<Region> regions_;                                      // by residency
  std::vector<Region> workspaces_;                                   // by op; address null: none
  std::vector<std::vector<std::uint32_t>> begins_, ends_, touched_;  // by op: residencies
  std::vector<std::uint32_t> entries_, exits_;                       // there before and after the step
};

}  // namespace tide
