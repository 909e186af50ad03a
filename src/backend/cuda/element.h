// How the elements of layer outputs and their gradients are stored. Everything else is f32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tide::cuda {

enum class Element : std::uint8_t { f32, bf16 };

constexpr std::size_t size_of(Element element) { return element == Element::f32 ? 4 : 2; }

}  // namespace tide::cuda
