// What the host fills in behind the labels of a batch, where only some of them count.
#pragma once

#include <cstdint>
#include <span>

#include "network/network.h"

namespace tide {

// Behind the labels of each loss that counts them: all labels of the batch over those that are classes, as a float.
// None of them: 0, so that nothing is learned from. Returns how many answers to the batch can be right, over all
// losses.
std::int64_t count_labels(const Network& network, std::span<std::int32_t> labels, std::int64_t batch);

}  // namespace tide
