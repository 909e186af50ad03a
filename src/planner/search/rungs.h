// Budgets as rungs: round numbers of bytes that depend on nothing. Plans are made for rungs only, and `auto` takes the
// fastest of all rungs that a budget reaches: a larger budget reaches the same rungs and more, so that it is never
// slower, by construction.
//
//   ... 8 GiB   8.5   9   9.5   10 ... 15.5   16   17   18 ...
#pragma once

#include <algorithm>

#include "base/bytes.h"

namespace tide {

class Rungs {
 public:
  // So many of them from one power of two to the next: itself a power of two.
  explicit Rungs(std::int64_t per_octave) : per_octave_(per_octave) {}

  // The highest one that is not above; a zero is one.
  [[nodiscard]] Bytes at_most(Bytes budget) const;
  // The next one. REQUIRES: `rung` is one.
  [[nodiscard]] Bytes above(Bytes rung) const {
    const Bytes room = Bytes(INT64_MAX) - rung;  // no more bytes can be counted
    return rung + std::min(width(rung), room);
  }
  // The one before; of zero, zero.
  [[nodiscard]] Bytes below(Bytes rung) const { return rung.is_zero() ? rung : at_most(rung - Bytes(1)); }
  [[nodiscard]] bool contains(Bytes budget) const { return at_most(budget) == budget; }

 private:
  // From the highest rung at most there to the next.
  [[nodiscard]] Bytes width(Bytes budget) const;

  std::int64_t per_octave_;
};

}  // namespace tide
