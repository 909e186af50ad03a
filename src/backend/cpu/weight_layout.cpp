#include "backend/cpu/weight_layout.h"

#include "backend/cpu/convolution_problem.h"

namespace tide::cpu {
namespace {

// oneDNN's choice has no reason to depend on the batch, but might: ask for one size always.
constexpr std::int64_t kTypicalBatch = 32;

}  // namespace

std::vector<std::int64_t> weight_signature(const Layer& layer, const Shape& sample) {
  if (layer.kind == LayerKind::fully_connected)
    return {sample.channels(), sample.positions(), layer.outputs[0].channels()};
  return ConvolutionProblem::of(layer, sample, kTypicalBatch).signature();
}

WeightLayout make_weight_layout(const Layer& layer, const Shape& sample, const dnnl::engine& engine) {
  using Tag = dnnl::memory::format_tag;
  constexpr auto kType = dnnl::memory::data_type::f32;
  if (layer.kind == LayerKind::fully_connected) {
    // One row per input in the order of channels-last memory: a plain matrix, input x output. The
    // other way round, oneDNN's backward takes up to twice the time.
    const dnnl::memory::dims dims{layer.outputs[0].channels(), sample.channels(), sample.positions(), 1};
    return {{dims, kType, Tag::oihw}, {dims, kType, Tag::hwio}, weight_signature(layer, sample)};
  }
  const ConvolutionProblem problem = ConvolutionProblem::of(layer, sample, kTypicalBatch);
  return {problem.logical_weights(), problem.forward(engine).query_md(dnnl::query::weights_md), problem.signature()};
}

}  // namespace tide::cpu
