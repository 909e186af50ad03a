// Canaries and poison. Every stay is filled with a pattern when it begins and again when
// it ends, and the bytes between its size and the next aligned address are watched:
//
//   |<------ storage ------>|<- canary ->|  next address
//
// A read of memory that the plan has freed or not yet filled yields NaN; a write past the
// end is reported with the op that did it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace tide {

class Guard {
 public:
  // `locate` gives the address of a residency or (storage invalid) of a workspace.
  Guard(const Phase& phase, std::vector<std::byte*> residencies, std::vector<std::byte*> workspaces);

  void begin_step();
  void before(std::size_t op);
  // Throws an Error that names the op and the tensor where a canary was overwritten.
  void after(std::size_t op);

 private:
  struct Region {
    std::byte* address = nullptr;
    std::size_t bytes = 0, aligned = 0;
    StorageId storage;  // invalid: a workspace
    bool keeps = false;  // holds a value when the step starts
  };

  void fill(const Region& region) const;
  void set_canary(const Region& region) const;
  void check(const Region& region, std::size_t op) const;

  const Phase& phase_;
  std::vector<Region> regions_;                       // by residency
  std::vector<Region> workspaces_;                    // by op; address null: none
  std::vector<std::vector<std::uint32_t>> begins_, ends_, written_;  // by op: residencies
  std::vector<std::uint32_t> entries_;
};

}  // namespace tide
