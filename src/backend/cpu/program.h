// A short list of oneDNN primitives that together run one task: the primitive itself, and
// the reorders around it where it wants another weight layout than the stored one. Made
// once per signature; every task that uses it has a kernel with memory objects of its own.
#pragma once

#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"

namespace tide::cpu {

class Context;

// Where an argument lies when the task runs.
struct Place {
  bool in_workspace = false;
  std::size_t value = 0;  // offset in the workspace, or position among the operands

  [[nodiscard]] std::byte* address(const Launch& launch) const {
    return in_workspace ? launch.workspace + value : launch.operands[value];
  }
};
inline Place operand_place(std::size_t position) { return {false, position}; }

struct Argument {
  int id = 0;  // DNNL_ARG_...
  dnnl::memory::desc layout;
  Place place;
};

class Program {
 public:
  explicit Program(const dnnl::engine& engine) : engine_(engine) {}

  // Workspace for the whole run of the task.
  [[nodiscard]] Place reserve(std::size_t bytes);
  // Runs a primitive that was described with a user scratchpad; `slack` bytes stay free behind it.
  void call(const dnnl::primitive_desc_base& primitive, std::vector<Argument> arguments, std::size_t slack = 0);
  // Copies into another layout, or adds to what is there.
  void reorder(const dnnl::memory::desc& from, Place source, const dnnl::memory::desc& to, Place target,
               bool accumulate = false);
  // Runs a kernel of our own, which is told the number of threads.
  using OwnKernel = std::function<void(const Launch&, int threads)>;
  void call(OwnKernel kernel);

  [[nodiscard]] Bytes workspace() const { return Bytes(static_cast<std::int64_t>(reserved_ + scratch_)); }
  [[nodiscard]] Kernel make_kernel(const std::shared_ptr<Context>& context) const;

 private:
  struct Stage {
    dnnl::primitive_desc_base description;
    std::vector<Argument> arguments;
    OwnKernel own;  // empty: a primitive
  };

  dnnl::engine engine_;
  std::vector<Stage> stages_;
  std::size_t reserved_ = 0;
  std::size_t scratch_ = 0;  // the largest scratchpad: the calls share one place behind the reserved ones
};

using ProgramPtr = std::shared_ptr<const Program>;

// What every primitive is described with.
[[nodiscard]] dnnl::primitive_attr user_scratchpad();

}  // namespace tide::cpu
