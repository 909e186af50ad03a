#include "backend/cpu/context.h"

#include <omp.h>

#include "backend/cpu/recipe.h"
#include "network/kind.h"

namespace tide::cpu {

int threads_of(const ContextPtr& context) { return context->threads(); }

void append_task(Signature& signature, const TaskView& view) {
  signature.push_back(static_cast<std::int64_t>(view.is_forward() ? TaskKind::forward : view.kind()));
  for (std::size_t i = 0; i < view.operands().size(); ++i) {
    const Operand& operand = view.operands()[i];
    signature.push_back(static_cast<std::int64_t>(operand.role));
    signature.push_back(static_cast<std::int64_t>(operand.access));
    signature.push_back(view.accumulates(i) ? 1 : 0);  // of a part, the access does not say it
  }
}

Context::Context(int threads)
    : threads_(threads > 0 ? threads : omp_get_num_procs()), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
  use_threads();
}

void Context::use_threads() const {
  if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
}

const WeightLayout* Context::weight_layout(const NetworkPtr& network, ParameterId parameter) {
  if (network_ != network) {
    by_parameter_.assign(network->parameters.size(), nullptr);
    for (const Layer& layer : network->layers) {
      if (description_of(layer.kind).product == Product::none) continue;
      const WeightLayout*& layout = by_parameter_[layer.parameter(ParameterRole::weight).index()];
      if (layout != nullptr) continue;  // shared: the first user decides
      const Shape& sample = network->shape(layer.inputs[0]);
      Signature signature = weight_signature(layer, sample);
      auto found = layouts_.find(signature);
      if (found == layouts_.end())
        found = layouts_.emplace(std::move(signature), make_weight_layout(layer, sample, engine_)).first;
      layout = &found->second;
    }
    network_ = network;
  }
  return by_parameter_[parameter.index()];
}

}  // namespace tide::cpu
