// Convolutions by cuDNN's graph interface, NHWC, in the terms of direct_convolution.h: a large
// side, a small side and weights, of which any one is made from the other two.
#pragma once

#include "backend/cuda/context.h"
#include "backend/cuda/element.h"
#include "network/layer.h"

namespace tide::cuda {

enum class Product { to_small, to_large, to_weights };

struct ConvolutionProblem {
  Shape large, small;  // with the batch
  Window window;
  std::int64_t groups;
  Product product;
  Element element = Element::f32;  // of both sides
  Element weights = Element::f32;
  bool bias = false;  // floats, added to the small side that is made
};

using Descriptor = Owner<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor>;

// One algorithm of the library, ready to run.
class ConvolutionPlan {
 public:
  // The library's suggestions, the fastest first; without nondeterministic ones if the context
  // says so. May be empty: it does not have every shape.
  [[nodiscard]] static const std::vector<std::shared_ptr<const ConvolutionPlan>>& find(
      Context& context, const ConvolutionProblem& problem);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t workspace() const { return workspace_; }
  [[nodiscard]] cudnnBackendDescriptor_t descriptor() const { return plan_.get(); }

  ConvolutionPlan(Descriptor plan, std::string name, std::size_t workspace)
      : plan_(std::move(plan)), name_(std::move(name)), workspace_(workspace) {}

 private:
  Descriptor plan_;
  std::string name_;
  std::size_t workspace_;
};
using ConvolutionPlanPtr = std::shared_ptr<const ConvolutionPlan>;

// A plan with the addresses that it last ran on: binding others makes a new descriptor.
class ConvolutionCall {
 public:
  explicit ConvolutionCall(ConvolutionPlanPtr plan) : plan_(std::move(plan)) {}
  // `bias` only for a problem that has one.
  void run(const Context& context, void* large, void* small, void* weights, void* bias, void* workspace);

 private:
  ConvolutionPlanPtr plan_;
  std::array<void*, 5> bound_{};
  Descriptor pack_;
};

}  // namespace tide::cuda
