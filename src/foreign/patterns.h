// What is put together while operations are added: each function says what an operation that is about to be added may
// be instead, a value that is there or was added in its place, or nothing. One family a file, in patterns/.
#pragma once

#include "foreign/operations.h"

namespace tide {

// The first of those below that has an answer.
[[nodiscard]] std::optional<Made> simplify(Operations& operations, const Operation& added);

// Factors and terms of functions that follow each other: (x * 2) / 2 is x.
[[nodiscard]] std::optional<Made> join_affine(Operations& operations, const Operation& added);
// hard-sigmoid, silu, hard-swish, gelu, mish and L2 normalization in pieces.
[[nodiscard]] std::optional<Made> join_functions(Operations& operations, const Operation& added);
// Reshapes and transposes that follow each other, and the shuffle of channels that they can be.
[[nodiscard]] std::optional<Made> join_rearrangements(Operations& operations, const Operation& added);
// Functions of single elements come before a reshape, so that what reads it sees what it was made of.
[[nodiscard]] std::optional<Made> hoist_functions(Operations& operations, const Operation& added);
// Padding as a part of the window behind it.
[[nodiscard]] std::optional<Made> join_padding(Operations& operations, const Operation& added);
// A bias behind a product without one; scale and shift behind a normalization without.
[[nodiscard]] std::optional<Made> join_parameters(Operations& operations, const Operation& added);

// Equal but for what floats round.
[[nodiscard]] bool is_near(double a, double b);

}  // namespace tide
