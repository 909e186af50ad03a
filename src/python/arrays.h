// Arrays of Python, by the buffer protocol or DLPack, as values of the library, and back.
#pragma once

#include "bindings.h"

namespace tide::python {

// Any array in host memory that is only read; what `Contiguous` has no place for is copied by its owner.
using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;
using Contiguous = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;
using FloatArray = nb::ndarray<nb::numpy, float>;
using DoubleArray = nb::ndarray<nb::numpy, double>;

// An array of Python as a tensor that keeps it alive; {"bfloat16": array of uint16} is one of bfloat16. `what` begins
// messages.
[[nodiscard]] ForeignTensor tensor_of(nb::handle array, const std::string& what);

// Row-major values as an array of Python that owns them.
[[nodiscard]] FloatArray array_of(std::vector<float> values, std::vector<std::int64_t> shape);
[[nodiscard]] DoubleArray array_of(std::vector<double> values, std::vector<std::int64_t> shape);

// "2x3x4"
[[nodiscard]] std::string extents_text(const std::vector<std::int64_t>& extents);
[[nodiscard]] std::vector<std::int64_t> extents_of(const Shape& shape);
[[nodiscard]] std::int64_t product_of(const std::vector<std::int64_t>& extents);

}  // namespace tide::python
