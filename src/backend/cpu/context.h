// What all kernels of one CpuBackend share: oneDNN's engine and stream, the number of
// threads, the programs made so far, and where the weights of the current network lie.
#pragma once

#include <dnnl.hpp>
#include <map>
#include <memory>
#include <vector>

#include "backend/cpu/program.h"
#include "backend/cpu/weight_layout.h"
#include "backend/task_view.h"
#include "network/network.h"

namespace tide::cpu {

// What two tasks must have in common to share a program, as numbers.
using Signature = std::vector<std::int64_t>;
// Adds the kind of a task and its operands' roles; a replay is as its forward task.
void append_task(Signature& signature, const TaskView& view);

class Context {
 public:
  explicit Context(int threads);

  [[nodiscard]] const dnnl::engine& engine() const { return engine_; }
  [[nodiscard]] const dnnl::stream& stream() const { return stream_; }
  [[nodiscard]] int threads() const { return threads_; }

  // The number of threads is a setting of the calling thread; kernels may run on another.
  void use_threads() const;

  // The program with this signature, made by `make` if it is new. A deep network has few.
  template <typename Make>
  [[nodiscard]] ProgramPtr program(const Signature& signature, const Make& make) {
    ProgramPtr& program = programs_[signature];
    if (program == nullptr) program = make();
    return program;
  }

  // The layout of a parameter, or null for those that are vectors in every layout.
  [[nodiscard]] const WeightLayout* weight_layout(const NetworkPtr& network, ParameterId parameter);

 private:
  int threads_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::map<Signature, ProgramPtr> programs_;
  std::map<Signature, WeightLayout> layouts_;
  NetworkPtr network_;  // of by_parameter_
  std::vector<const WeightLayout*> by_parameter_;
};

}  // namespace tide::cpu
