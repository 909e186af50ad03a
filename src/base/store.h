// Memory that has no addresses here: it is read and written in pieces. A file, or memory of another rank.
//
// One thread may read while another writes.
#pragma once

#include "base/bytes.h"

namespace tide {

class Store {
 public:
  virtual ~Store() = default;

  // All of the bytes, or an Error. REQUIRES: offset + bytes <= size().
  virtual void read(Bytes offset, std::byte* to, Bytes bytes) = 0;
  virtual void write(Bytes offset, const std::byte* from, Bytes bytes) = 0;
  [[nodiscard]] virtual Bytes size() const = 0;
};

}  // namespace tide
