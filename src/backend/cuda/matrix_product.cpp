#include "backend/cuda/matrix_product.h"

#include <algorithm>

namespace tide::cuda {
namespace {

constexpr int kMostAlgorithms = 3;
// What the library's fastest products on Hopper ask for.
constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;

template <typename Value>
void set(const MatmulDescription& description, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof value), "describing a product");
}
template <typename Value>
void set(const MatmulPreference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
        "describing a product");
}

MatrixLayout matrix(Element element, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  const cudaDataType_t type = element == Element::f32 ? CUDA_R_32F : CUDA_R_16BF;
  check(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                                   rows),
        "describing a matrix");
  return MatrixLayout(layout);
}

}  // namespace

struct MatrixPlan::Description {
  MatmulDescription product;
  MatrixLayout a, b, c;

  Description(Precision precision, const MatrixProblem& p)
      : a(p.transpose_a ? matrix(p.factors, p.inner, p.rows) : matrix(p.factors, p.rows, p.inner)),
        b(p.transpose_b ? matrix(p.factors, p.columns, p.inner) : matrix(p.factors, p.inner, p.columns)),
        c(matrix(p.result, p.rows, p.columns)) {
    cublasLtMatmulDesc_t made = nullptr;
    const bool tf32 = p.factors == Element::f32 && precision != Precision::fp32;
    const cublasComputeType_t type = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescCreate(&made, type, CUDA_R_32F), "describing a product");
    product.reset(made);
    set(product, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(product, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (p.bias) set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  }

  // The library's suggestions with at most this workspace.
  [[nodiscard]] std::vector<cublasLtMatmulHeuristicResult_t> suggest(const Context& context,
                                                                     std::size_t workspace) const {
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made), "describing a product");
    const MatmulPreference preference(made);
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    if (context.deterministic()) {
      // All but sums in place, whose order is that of arrival.
      const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                    CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
      set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
    }
    std::vector<cublasLtMatmulHeuristicResult_t> results(kMostAlgorithms);
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(context.cublas(), product.get(), a.get(), b.get(), c.get(), c.get(),
                                       preference.get(), kMostAlgorithms, results.data(), &count);
    results.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(count) : 0);
    std::erase_if(results, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
    return results;
  }
};

const std::vector<MatrixPlanPtr>& MatrixPlan::find(Context& context, const MatrixProblem& p) {
  const Signature signature{p.rows,
                            p.columns,
                            p.inner,
                            p.transpose_a,
                            p.transpose_b,
                            p.bias,
                            p.accumulate,
                            static_cast<std::int64_t>(p.factors),
                            static_cast<std::int64_t>(p.result)};
  std::vector<MatrixPlanPtr>& plans = context.products[signature];
  if (!plans.empty()) return plans;
  const auto description = std::make_shared<const Description>(context.precision(), p);
  auto results = description->suggest(context, kMostWorkspace);
  const bool needs_none =
      std::any_of(results.begin(), results.end(), [](const auto& r) { return r.workspaceSize == 0; });
  if (!needs_none)
    for (const auto& result : description->suggest(context, 0)) {
      results.push_back(result);
      break;
    }
  for (const auto& result : results) {
    const auto plan = std::make_shared<MatrixPlan>();
    plan->description_ = description;
    plan->algorithm_ = result.algo;
    plan->workspace_ = result.workspaceSize;
    plan->accumulate_ = p.accumulate;
    plans.push_back(plan);
  }
  return plans;
}

void MatrixPlan::run(const Context& context, const void* a, const void* b, void* c, const float* bias,
                     std::byte* workspace) const {
  const float one = 1, keep = accumulate_ ? 1 : 0;
  const Description& d = *description_;
  if (bias != nullptr) set(d.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  check(cublasLtMatmul(context.cublas(), d.product.get(), &one, a, d.a.get(), b, d.b.get(), &keep, c, d.c.get(), c,
                       d.c.get(), &algorithm_, workspace, workspace_, context.stream()),
        "a matrix product");
}

}  // namespace tide::cuda
