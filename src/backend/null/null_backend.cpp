// Computes nothing: executor, traces and reports are tested with it without hardware.
#include "backend/host_memory.h"
#include "backend/logical_order.h"
#include "backend/make.h"

namespace tide {
namespace {

class NullBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "null"; }
  [[nodiscard]] std::string description() const override { return "null"; }

  void annotate(Step& step) const override { step.backend = description(); }

  [[nodiscard]] Kernel prepare(const Step& /*step*/, TaskId /*task*/, std::size_t /*algorithm*/) override {
    return [](const Launch&) {};
  }

  void write_tensor(const Step& step, TensorId tensor, std::span<const float> logical, std::byte* address) override {
    write_plain(step.tensor(tensor).type, logical, address);
  }
  void read_tensor(const Step& step, TensorId tensor, const std::byte* address, std::span<float> logical) override {
    read_plain(step.tensor(tensor).type, address, logical);
  }

  [[nodiscard]] std::byte* allocate(Bytes bytes) override { return tide::allocate_host(bytes); }
  void release(std::byte* memory, Bytes bytes) noexcept override { tide::release_host(memory, bytes); }
};

}  // namespace

std::unique_ptr<Backend> make_null_backend() { return std::make_unique<NullBackend>(); }

}  // namespace tide
