// Counter-based random numbers (Philox 4x32-10, Salmon et al., SC 2011): a number is a
// function of its key and counter alone, so a dropout mask can be made again in backward,
// in a recomputation, in a sub-batch or on another rank without being stored.
#pragma once

#include <array>
#include <cstdint>

namespace tide {

using Random4 = std::array<std::uint32_t, 4>;

constexpr Random4 philox(Random4 counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// What the numbers are for; keeps streams apart.
enum class RandomUse : std::uint32_t {
  dropout = 1,
  initialization = 2,
  shuffle = 3,
  synthetic_data = 4,
  augmentation = 5
};

// Four numbers, numbers 4*block .. 4*block+3 of the stream (seed, use, a, b, c). For
// dropout: a = step, b = layer, c = global sample index, numbers = elements of the sample
// in memory order (height, width, channels).
constexpr Random4 random_block(std::uint64_t seed, RandomUse use, std::uint64_t a, std::uint32_t b, std::uint64_t c,
                               std::uint64_t block) {
  // Fold the five-part name of the stream into a key, then count blocks under it.
  const Random4 name =
      philox({static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32), b, static_cast<std::uint32_t>(use)},
             static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                 static_cast<std::uint32_t>(c) ^ name[2], static_cast<std::uint32_t>(c >> 32) ^ name[3]},
                name[0], name[1]);
}

// In [0, 1), 24 bits.
constexpr float to_unit(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

}  // namespace tide
