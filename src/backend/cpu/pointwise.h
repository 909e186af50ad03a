// Elementwise loops that several families of kernels use. Addresses may be equal, but must
// not overlap otherwise.
#pragma once

#include <cstdint>

namespace tide::cpu {

// target += source
void add_floats(float* target, const float* source, std::int64_t count, int threads);
// target = (or +=) the sums of the columns of source (rows x columns)
void sum_rows(float* target, const float* source, std::int64_t rows, std::int64_t columns, bool accumulate,
              int threads);

}  // namespace tide::cpu
