#include "backend/backend.h"

#include <cstring>

#include "backend/host_memory.h"
#include "backend/logical_order.h"

namespace tide {

void Backend::pack(const Step& step, ParameterId parameter, std::span<const float> logical, std::byte* memory) const {
  const Shape& shape = step.network->parameters[parameter.index()].shape;
  write_logical(shape, MemoryOrder::row_major(shape.rank()), DataType::f32, logical, memory);
}

void Backend::unpack(const Step& step, ParameterId parameter, const std::byte* memory, std::span<float> logical) const {
  const Shape& shape = step.network->parameters[parameter.index()].shape;
  read_logical(shape, MemoryOrder::row_major(shape.rank()), DataType::f32, memory, logical);
}

std::byte* Backend::allocate_host(Bytes bytes) { return tide::allocate_host(bytes); }

void Backend::release_host(std::byte* memory, Bytes bytes) noexcept { tide::release_host(memory, bytes); }

void Backend::copy(std::byte* to, const std::byte* from, Bytes bytes) { std::memcpy(to, from, bytes.size()); }

std::string Backend::export_memory(std::byte* /*memory*/) {
  throw Error("the device memory of {} cannot be lent to other processes", name());
}

std::byte* Backend::open_memory(const std::string& /*text*/) {
  throw Error("device memory of other processes cannot be had on {}", name());
}

std::unique_ptr<StepQueue> Backend::make_queue(bool /*record_times*/) { return nullptr; }

}  // namespace tide
