#include "arrays.h"

#include <fmt/ranges.h>

namespace tide::python {
namespace {

std::optional<ForeignType> type_of(nb::dlpack::dtype type) {
  using nb::dlpack::dtype_code;
  switch (static_cast<dtype_code>(type.code)) {
    case dtype_code::Float:
      return type.bits == 32   ? std::optional(ForeignType::f32)
             : type.bits == 64 ? std::optional(ForeignType::f64)
             : type.bits == 16 ? std::optional(ForeignType::f16)
                               : std::nullopt;
    case dtype_code::Bfloat: return ForeignType::bf16;
    case dtype_code::Int:
      return type.bits == 64   ? std::optional(ForeignType::i64)
             : type.bits == 32 ? std::optional(ForeignType::i32)
             : type.bits == 16 ? std::optional(ForeignType::i16)
             : type.bits == 8  ? std::optional(ForeignType::i8)
                               : std::nullopt;
    case dtype_code::UInt: return type.bits == 8 ? std::optional(ForeignType::u8) : std::nullopt;
    case dtype_code::Bool: return ForeignType::boolean;
    default: return std::nullopt;
  }
}

template <typename Value>
nb::ndarray<nb::numpy, Value> owned_array(std::vector<Value> values, const std::vector<std::int64_t>& shape) {
  auto* const kept = new std::vector<Value>(std::move(values));
  const nb::capsule owner(kept, [](void* memory) noexcept { delete static_cast<std::vector<Value>*>(memory); });
  const std::vector<std::size_t> extents(shape.begin(), shape.end());
  return nb::ndarray<nb::numpy, Value>(kept->data(), extents.size(), extents.data(), owner);
}

}  // namespace

ForeignTensor tensor_of(nb::handle array, const std::string& what) {
  const bool is_upper_half = nb::isinstance<nb::dict>(array);
  nb::object given = nb::borrow(array);
  if (is_upper_half) {
    const auto wrapped = nb::cast<nb::dict>(array);
    if (!wrapped.contains("bfloat16"))
      throw Error("{}: is no array; give a numpy array, or {{'bfloat16': array}}", what);
    given = wrapped["bfloat16"];
  }
  Contiguous held;
  if (!nb::try_cast(given, held, true))
    throw Error("{}: is no array in the processor's memory; give a numpy array, or one that DLPack can hand over",
                what);
  ForeignTensor tensor;
  for (std::size_t axis = 0; axis < held.ndim(); ++axis)
    tensor.shape.push_back(static_cast<std::int64_t>(held.shape(axis)));
  const nb::dlpack::dtype type = held.dtype();
  if (is_upper_half) {
    if (type.bits != 16) throw Error("{}: the upper halves of floats have 16 bits, not {}", what, type.bits);
    tensor.type = ForeignType::bf16;
  } else {
    const std::optional<ForeignType> known = type_of(type);
    if (!known) throw Error("{}: its type is not one that networks have; convert it to float32 or int64", what);
    tensor.type = *known;
  }
  tensor.bytes = {static_cast<const std::byte*>(held.data()), held.nbytes()};
  tensor.owner = std::make_shared<const Contiguous>(std::move(held));
  return tensor;
}

FloatArray array_of(std::vector<float> values, std::vector<std::int64_t> shape) {
  return owned_array(std::move(values), shape);
}
DoubleArray array_of(std::vector<double> values, std::vector<std::int64_t> shape) {
  return owned_array(std::move(values), shape);
}

std::string extents_text(const std::vector<std::int64_t>& extents) {
  return extents.empty() ? "one number" : fmt::format("{}", fmt::join(extents, "x"));
}

std::vector<std::int64_t> extents_of(const Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }

std::int64_t product_of(const std::vector<std::int64_t>& extents) {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) product = checked_multiply(product, extent);
  return product;
}

}  // namespace tide::python
