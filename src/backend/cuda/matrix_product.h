// Matrix products by cuBLASLt, over column-major matrices: C (rows x columns) = op(A) op(B),
// plus a bias per row of C where wanted. Row-major tensors of ours are the transposes of these.
#pragma once

#include "backend/cuda/context.h"
#include "backend/cuda/element.h"

namespace tide::cuda {

struct MatrixProblem {
  std::int64_t rows, columns, inner;
  bool transpose_a, transpose_b;
  bool bias, accumulate;
  Element factors, result;  // of A and B, and of C
};

class MatrixPlan {
 public:
  // The algorithms that the library suggests, the fastest first; one of them needs no workspace.
  // None where it does not have the shape.
  [[nodiscard]] static const std::vector<std::shared_ptr<const MatrixPlan>>& find(Context& context,
                                                                                  const MatrixProblem& problem);

  [[nodiscard]] std::size_t workspace() const { return workspace_; }
  // `bias` only for a problem that has one.
  void run(const Context& context, const void* a, const void* b, void* c, const float* bias,
           std::byte* workspace) const;

 private:
  struct Description;
  std::shared_ptr<const Description> description_;  // shared by a problem's algorithms
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_ = 0;
  bool accumulate_ = false;
};
using MatrixPlanPtr = std::shared_ptr<const MatrixPlan>;

}  // namespace tide::cuda
