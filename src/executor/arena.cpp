#include "executor/arena.h"

namespace tide {

Arena::Arena(Backend& backend, Bytes size) : backend_(backend), size_(size), memory_(backend.allocate(size)) {}

Arena::~Arena() { backend_.release(memory_, size_); }

}  // namespace tide
