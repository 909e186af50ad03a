#include "cluster/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <vector>

#include "base/bfloat16.h"
#include "base/error.h"

namespace tide {
namespace {

// The parts that ranks own: equal ones, of which the last may hold fewer values or none.
[[nodiscard]] std::size_t part_size(std::size_t count, int ranks) {
  const auto parts = static_cast<std::size_t>(ranks);
  return (count + parts - 1) / parts;
}

[[nodiscard]] std::span<float> part_of(std::span<float> values, int rank, std::size_t part) {
  const std::size_t begin = std::min(values.size(), static_cast<std::size_t>(rank) * part);
  return values.subspan(begin, std::min(part, values.size() - begin));
}

// What a rank has to do with: all of it, the half of that which it sums, and so on; the other halves are its peers'.
template <typename Value>
using Halves = std::vector<std::span<Value>>;

// REQUIRES: 1, 2, 4, 8 ... ranks; scratch is as large as the larger half.
Halves<float> sum_by_halves(Communicator& communicator, std::span<float> values, std::span<float> scratch) {
  const int rank = communicator.rank();
  Halves<float> halves{values};
  for (int bit = communicator.size() / 2; bit > 0; bit /= 2) {
    const std::span<float> whole = halves.back();
    const std::span<float> low = whole.first(whole.size() / 2), high = whole.subspan(whole.size() / 2);
    const bool is_low = (rank & bit) == 0;
    const std::span<float> kept = is_low ? low : high, given = is_low ? high : low;
    const std::span<float> received = scratch.first(kept.size());
    communicator.exchange(rank ^ bit, std::as_bytes(given), std::as_writable_bytes(received));
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] += received[i];
    halves.push_back(kept);
  }
  return halves;
}

// Each half from the rank that has it, the smallest first.
template <typename Value>
void put_together(Communicator& communicator, Halves<Value> halves) {
  const int rank = communicator.rank();
  for (int bit = 1; bit < communicator.size(); bit *= 2) {
    const std::span<Value> kept = halves.back();
    halves.pop_back();
    const std::span<Value> whole = halves.back();
    const bool is_low = (rank & bit) == 0;
    const std::span<Value> missing = is_low ? whole.subspan(kept.size()) : whole.first(whole.size() - kept.size());
    communicator.exchange(rank ^ bit, std::as_bytes(kept), std::as_writable_bytes(missing));
  }
}

}  // namespace

void tree_all_reduce(Communicator& communicator, std::span<float> values, std::span<float> scratch) {
  assert(scratch.size() == values.size());
  if (!std::has_single_bit(static_cast<unsigned>(communicator.size())))
    throw Error("sums that are the same on any number of ranks need 1, 2, 4, 8, ... ranks, not {}",
                communicator.size());
  for (int bit = 1; bit < communicator.size(); bit <<= 1) {
    communicator.exchange(communicator.rank() ^ bit, std::as_bytes(values), std::as_writable_bytes(scratch));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += scratch[i];
  }
}

void quick_all_reduce(Communicator& communicator, std::span<float> values, std::span<float> scratch) {
  assert(scratch.size() == values.size());
  if (communicator.size() == 1) return;
  if (!std::has_single_bit(static_cast<unsigned>(communicator.size()))) return communicator.all_reduce(values);
  put_together(communicator, sum_by_halves(communicator, values, scratch));
}

void quick_reduce_scatter(Communicator& communicator, std::span<float> values, std::span<float> scratch) {
  if (communicator.size() == 1) return;
  if (!std::has_single_bit(static_cast<unsigned>(communicator.size()))) return communicator.reduce_scatter(values);
  static_cast<void>(sum_by_halves(communicator, values, scratch));
}

void quick_all_gather(Communicator& communicator, std::span<std::byte> values) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  if (!std::has_single_bit(ranks)) return communicator.all_gather(values);
  Halves<std::byte> halves{values};
  for (std::size_t bit = ranks / 2; bit > 0; bit /= 2) {
    const std::span<std::byte> whole = halves.back();
    const bool is_low = (static_cast<std::size_t>(communicator.rank()) & bit) == 0;
    halves.push_back(is_low ? whole.first(whole.size() / 2) : whole.subspan(whole.size() / 2));
  }
  put_together(communicator, std::move(halves));
}

std::size_t bf16_scratch_bytes(std::size_t count, int ranks) {
  return ranks == 1 ? 0 : part_size(count, ranks) * static_cast<std::size_t>(ranks + 1) * sizeof(BFloat16);
}

void all_reduce_bf16(Communicator& communicator, std::span<float> values, std::span<std::byte> scratch) {
  const int ranks = communicator.size(), own = communicator.rank();
  if (ranks == 1 || values.empty()) return;
  assert(scratch.size() >= bf16_scratch_bytes(values.size(), ranks));
  const std::size_t part = part_size(values.size(), ranks);
  // A part of each rank, then the one on its way out.
  const std::span<BFloat16> rounded(reinterpret_cast<BFloat16*>(scratch.data()),
                                    part * static_cast<std::size_t>(ranks + 1));
  const std::span<BFloat16> all = rounded.first(part * static_cast<std::size_t>(ranks)), outgoing = rounded.last(part);
  const auto slot = [&](int rank) { return all.subspan(static_cast<std::size_t>(rank) * part, part); };
  const auto round_to = [](std::span<const float> from, std::span<BFloat16> to) {
    std::transform(from.begin(), from.end(), to.begin(), [](float value) { return BFloat16(value); });
  };

  // Everybody with everybody: in round k those exchange whose ranks add up to k.
  std::fill(outgoing.begin(), outgoing.end(), BFloat16());
  for (int k = 0; k < ranks; ++k) {
    const int peer = (k - own + ranks) % ranks;
    if (peer == own) continue;
    round_to(part_of(values, peer, part), outgoing);
    communicator.exchange(peer, std::as_bytes(outgoing), std::as_writable_bytes(slot(peer)));
  }

  const std::span<float> mine = part_of(values, own, part);
  constexpr std::size_t kPiece = 1024;
  std::array<float, kPiece> sum;
  for (std::size_t first = 0; first < mine.size(); first += kPiece) {
    const std::span<float> piece = mine.subspan(first, std::min(kPiece, mine.size() - first));
    std::fill(sum.begin(), sum.end(), -0.0F);  // to which any value can be added without a change
    for (int rank = 0; rank < ranks; ++rank) {
      const std::span<const BFloat16> theirs = slot(rank).subspan(first, piece.size());
      for (std::size_t i = 0; i < piece.size(); ++i) sum[i] += rank == own ? piece[i] : static_cast<float>(theirs[i]);
    }
    std::copy_n(sum.begin(), piece.size(), piece.begin());
  }
  round_to(mine, slot(own));
  communicator.all_gather(std::as_writable_bytes(all));
  std::transform(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(values.size()), values.begin(),
                 [](BFloat16 value) { return static_cast<float>(value); });
}

}  // namespace tide
